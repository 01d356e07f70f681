#include "claims.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holdfast::experiment::paper::lens {

Finding judge_small_share(const std::vector<SharesBelow>& readings, double most) {
  std::vector<Judgement> judgements;
  std::vector<std::string> texts;
  for (const SharesBelow& reading : readings) {
    Tally tally;
    for (const Case& dataset : reading.datasets) tally.add_below(dataset.value, most);
    judgements.push_back(judge_all(tally));
    texts.push_back(fmt::format("Below {}: {}, so {} ({}).", reading.limit, tally.words(), to_string(judgements.back()),
                                words(reading.datasets)));
  }
  const std::vector<Case>& first = readings.front().datasets;
  const auto highest = std::ranges::max_element(
      first, {}, [](const Case& one) { return std::isnan(one.value.value) ? -1 : one.value.high.value_or(one.value.value); });
  const bool is_any = highest != first.end();
  return {agreed(judgements),
          {{"highest", is_any ? highest->name : "none"}, {"readings", fmt::format("{}", fmt::join(texts, " "))}},
          is_any ? highest->value : Value{}};
}

Finding judge_order(const std::vector<Value>& gains, bool is_the_papers) {
  Tally tally;
  for (const Value& gain : gains) tally.add_above(gain, 0);
  return {is_the_papers ? judge_all(tally) : Judgement::kNotDecided,
          {{"tally", tally.words()}, {"stand_ins", is_the_papers ? "" : "The networks are stand-ins: no ResNet50 was given."}},
          tally.share()};
}

Judgement judge_contraction(double largest, std::int64_t pairs) {
  if (pairs == 0) return Judgement::kNotDecided;
  return largest <= 1 ? Judgement::kHolds : Judgement::kDoesNotHold;
}

Judgement Condition::judgement() const {
  return is_above ? judge_above(number.value, limit) : judge_below(number.value, limit);
}

std::string in_words(const std::vector<Condition>& conditions) {
  std::string met, lacking;
  for (const Condition& one : conditions) {
    const bool holds = one.judgement() == Judgement::kHolds;
    (holds ? met : lacking) += fmt::format("{}: {}, must be {} {}{}. ", one.number.name, words(one.number.value),
                                           one.is_above ? "above" : "below", one.limit,
                                           holds                                       ? ""
                                           : one.judgement() == Judgement::kNotDecided ? ", open"
                                                                                       : ", missed");
  }
  return (lacking.empty() ? "" : "Not surely within the limits: " + lacking) +
         (met.empty() ? "" : "Surely within the limits: " + met);
}

Judgement with_conditions(Judgement of_cases, const std::vector<Condition>& conditions) {
  const auto any = [&](Judgement wanted) {
    return std::ranges::any_of(conditions, [&](const Condition& one) { return one.judgement() == wanted; });
  };
  if (of_cases == Judgement::kNotDecided) return any(Judgement::kDoesNotHold) ? Judgement::kDoesNotHold : of_cases;
  if (of_cases != Judgement::kHolds) return of_cases;
  return any(Judgement::kDoesNotHold)  ? Judgement::kHoldsInPart
         : any(Judgement::kNotDecided) ? Judgement::kNotDecided
                                       : Judgement::kHolds;
}

}  // namespace holdfast::experiment::paper::lens
