#include "verdicts.h"

#include <cmath>

#include <fmt/format.h>

#include "cells.h"
#include "holdfast/core/words.h"

namespace holdfast::lens {
namespace {

Tally tally_above(const std::vector<Case>& cases, double limit) {
  Tally tally;
  for (const Case& one : cases) tally.add_above(one.value, limit);
  return tally;
}

}  // namespace

std::string outcome_above(const std::vector<Case>& cases, double limit) {
  const Tally tally = tally_above(cases, limit);
  return fmt::format("{}: {}", counted(tally.all, "case"), tally.words());
}

Verdict all_above(double limit, const std::string& claim, const std::string& says, const std::string& what,
                  const std::vector<Case>& cases, const std::string& also, std::int64_t seeds) {
  const Tally tally = tally_above(cases, limit);
  const Case* lowest = lowest_of(cases);
  if (lowest == nullptr) return make_verdict(claim, says, "not decided", "There is no case to judge. " + also, {}, seeds);
  const std::string more = also + (also.empty() || also.ends_with(' ') ? "" : " ");
  if (tally.all == 1) {
    return make_verdict(claim, says, judge_all(tally),
                        fmt::format("Number: {}, {}; above {} is for the claim. {}", what, lowest->name, limit, more),
                        lowest->value, seeds);
  }
  return make_verdict(
      claim, says, judge_all(tally),
      fmt::format("Number: share of the cases in which {} is above {}; {}. It reaches lowest in {}, {}. {}Cases: {}.", what,
                  limit, outcome_above(cases, limit), lowest->name, words(lowest->value), more, words(cases)),
      tally.share(), seeds);
}

Value independent_difference(const Value& first, const Value& second) {
  Value result{.value = first.value - second.value};
  if (!first.low || !first.high || !second.low || !second.high) return result;
  result.low = result.value - std::hypot(first.value - *first.low, *second.high - second.value);
  result.high = result.value + std::hypot(*first.high - first.value, second.value - *second.low);
  return result;
}

std::string accuracies_in_words(const DatasetCase& one) {
  std::string text;
  for (const Subject& subject : one.subjects)
    text += fmt::format("{} {} {}", text.empty() ? "" : ",", subject.training, words(accuracy_of(subject)));
  return fmt::format("Test accuracy on {}:{}.", one.setting.name, text);
}

}  // namespace holdfast::lens
