// Who wins, and whether two orderings of methods agree: for tables 1 and 2 and for what remains of them under other attacks.
#pragma once

#include <string>
#include <vector>

#include "zoo.h"

namespace holdfast::r2et {

// The numbers of one dataset by method, ours and the paper's; NaN where there is none.
struct Ordering {
  Setting setting;
  std::vector<const Method*> methods;
  std::vector<std::vector<std::vector<double>>> values;  // by method, member and sample
  std::vector<double> means, published;                  // by method

  void add(const Entry& entry, std::vector<std::vector<double>> by_member, const std::string& column);
};

// Methods as the paper prints them: those with a row there, ReLU where there is a choice.
bool as_printed(const Method& method);
// As its authors' code runs: R2ET with softplus.
bool as_coded(const Method& method);

Value agreement(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed);
// Of the means of two orderings of the same methods.
Value agreement(const Ordering& first, const Ordering& second, std::uint64_t seed);

// The method with the highest mean among those that count; null when there is none.
const Method* best(const Ordering& ordering, bool (*counts)(const Method&));
// Mean of the method that is highest among those that count, minus the same for those that do not: paired by member.
Value lead(const Ordering& ordering, bool (*counts)(const Method&), std::uint64_t seed);

// R2: on how many datasets a variant of R2ET is the best of the paper's methods. R4: of the Hessian-only methods, on how many of
// (dataset, method) P@k is not above Vanilla's.
Verdict judge_best(const std::vector<Ordering>& orderings, const std::string& under);
Verdict judge_hessian_only(const std::vector<Ordering>& orderings, const std::string& under, std::uint64_t seed);

}  // namespace holdfast::r2et
