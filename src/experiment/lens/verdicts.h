// Verdicts of the LENS experiments, by the rule of ../judging.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../judging.h"
#include "setting.h"

namespace holdfast::lens {

// L1: a random sign is called as strong as an attack that leaves at most this much less of the top k.
inline constexpr double kAsStrong = -0.05;

// A claim that every case is above `limit`. The number is the share of the cases that are (Tally::share), or that of the only
// one. The why says `what` is held against the limit, how many cases speak for the claim and against it, has `also`, and all
// cases.
Verdict all_above(double limit, const std::string& claim, const std::string& says, const std::string& what,
                  const std::vector<Case>& cases, const std::string& also, std::int64_t seeds);
// "2 cases: 1 for it, 0 against it, 1 open".
std::string outcome_above(const std::vector<Case>& cases, double limit);

// first - second of values that have nothing in common: the ends' distances add as squares.
Value independent_difference(const Value& first, const Value& second);
// "Test accuracy on mnist: natural 0.984 [0.981, 0.987], pgd ...".
std::string accuracies_in_words(const DatasetCase& one);

}  // namespace holdfast::lens
