#include "judging.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/words.h"

namespace holdfast::experiment {
namespace {

constexpr Judgement kHolds = Judgement::kHolds, kInPart = Judgement::kHoldsInPart, kFails = Judgement::kDoesNotHold,
                    kOpen = Judgement::kNotDecided;

}  // namespace

bool surely_above(const Value& value, double limit) {
  return value.low && *value.low > limit;
}

bool surely_below(const Value& value, double limit) {
  return value.high && *value.high < limit;
}

std::string words(const Value& value, int digits) {
  if (std::isnan(value.value)) return "not measured";
  if (!value.low || !value.high) return fmt::format("{:.{}f}", value.value, digits);
  return fmt::format("{0:.{3}f} [{1:.{3}f}, {2:.{3}f}]", value.value, *value.low, *value.high, digits);
}

std::string words(const std::vector<Case>& cases) {
  std::vector<std::string> parts;
  for (const Case& one : cases) {
    if (!std::isnan(one.value.value)) parts.push_back(fmt::format("{} {}", one.name, words(one.value)));
  }
  return parts.empty() ? "none measured" : fmt::format("{}", fmt::join(parts, "; "));
}

void Tally::add_above(const Value& value, double limit) {
  if (std::isnan(value.value)) return;
  ++all;
  in_favour += surely_above(value, limit) ? 1 : 0;
  against += surely_below(value, limit) ? 1 : 0;
  likely += value.value >= limit ? 1 : 0;
}

void Tally::add_below(const Value& value, double limit) {
  add_above(negative(value), -limit);
}

Value Tally::share() const {
  if (all == 0) return {};
  const auto of_all = [&](std::int64_t count) { return static_cast<double>(count) / static_cast<double>(all); };
  return {.value = of_all(likely), .low = of_all(in_favour), .high = of_all(all - against), .count = all};
}

std::string Tally::words() const {
  return fmt::format("{} for it, {} against it, {} open", in_favour, against, open());
}

Judgement judge_most(const Tally& tally) {
  if (2 * tally.in_favour > tally.all) return kHolds;
  return tally.all > 0 && 2 * tally.against >= tally.all ? kFails : kOpen;
}

Judgement judge_all(const Tally& tally) {
  if (2 * tally.against > tally.all) return kFails;
  if (tally.against == 0) return 2 * tally.in_favour > tally.all ? kHolds : kOpen;
  return tally.in_favour > 0 ? kInPart : kOpen;
}

Judgement judge_above(const Value& value, double limit) {
  return surely_above(value, limit) ? kHolds : surely_below(value, limit) ? kFails : kOpen;
}

Judgement judge_below(const Value& value, double limit) {
  return judge_above(negative(value), -limit);
}

Judgement judge_mean_above(const std::vector<Case>& datasets, double limit) {
  const Judgement of_mean = judge_above(mean_over(datasets), limit);
  const bool exception = std::ranges::any_of(datasets, [&](const Case& one) { return surely_below(one.value, limit); });
  return of_mean == kHolds && exception ? kInPart : of_mean;
}

Judgement combined(const std::vector<Judgement>& parts) {
  const auto is = [](Judgement wanted) { return [wanted](Judgement part) { return part == wanted; }; };
  if (parts.empty()) return kOpen;
  if (std::ranges::all_of(parts, is(kHolds))) return kHolds;
  if (std::ranges::all_of(parts, is(kFails))) return kFails;
  return std::ranges::any_of(parts, is(kHolds)) || std::ranges::any_of(parts, is(kInPart)) ? kInPart : kOpen;
}

Judgement agreed(const std::vector<Judgement>& readings) {
  const bool alike = !readings.empty() && std::ranges::all_of(readings, [&](const auto& one) { return one == readings[0]; });
  return alike ? readings[0] : kOpen;
}

const Case* lowest_of(const std::vector<Case>& cases) {
  const auto low = [](const Case& one) { return one.value.low.value_or(one.value.value); };
  const Case* lowest = nullptr;
  for (const Case& one : cases) {
    if (!std::isnan(one.value.value) && (lowest == nullptr || low(one) < low(*lowest))) lowest = &one;
  }
  return lowest;
}

Value mean_over(const std::vector<Case>& datasets) {
  Value mean{.value = 0};
  double below = 0, above = 0;
  bool intervals = true;
  for (const Case& one : datasets) {
    if (std::isnan(one.value.value)) continue;
    ++mean.count;
    mean.value += one.value.value;
    intervals = intervals && one.value.low && one.value.high;
    if (!intervals) continue;
    below = std::hypot(below, one.value.value - *one.value.low);
    above = std::hypot(above, *one.value.high - one.value.value);
  }
  if (mean.count == 0) return {};
  const auto count = static_cast<double>(mean.count);
  mean.value /= count;
  if (!intervals) return mean;
  mean.low = mean.value - below / count;
  mean.high = mean.value + above / count;
  return mean;
}

Value negative(const Value& value) {
  Value result{.value = -value.value, .count = value.count};
  if (value.high) result.low = -*value.high;
  if (value.low) result.high = -*value.low;
  return result;
}

Verdict make_verdict(const std::string& claim, const std::string& says, Judgement judgement, const std::string& why,
                     const Value& number, std::int64_t seeds) {
  Verdict result{.claim = claim, .says = says, .judgement = judgement, .why = why, .seeds = seeds};
  if (!std::isnan(number.value)) result.number = number.value;
  result.low = number.low;
  result.high = number.high;
  result.why.erase(result.why.find_last_not_of(' ') + 1);
  return result;
}

Tally tally_above(const std::vector<Case>& cases, double limit) {
  Tally tally;
  for (const Case& one : cases) tally.add_above(one.value, limit);
  return tally;
}

std::string outcome_above(const std::vector<Case>& cases, double limit) {
  const Tally tally = tally_above(cases, limit);
  return fmt::format("{}: {}", counted(tally.all, "case"), tally.words());
}

Verdict all_above(double limit, const std::string& claim, const std::string& says, const std::string& what,
                  const std::vector<Case>& cases, const std::string& also, std::int64_t seeds) {
  const Tally tally = tally_above(cases, limit);
  const Case* lowest = lowest_of(cases);
  if (lowest == nullptr) return make_verdict(claim, says, kOpen, "There is no case to judge. " + also, {}, seeds);
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

}  // namespace holdfast::experiment
