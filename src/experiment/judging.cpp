#include "judging.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace holdfast {
namespace {

const char* const kHolds = "holds";
const char* const kFails = "does not hold";
const char* const kInPart = "holds in part";
const char* const kOpen = "not decided";

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

std::string judge_most(const Tally& tally) {
  if (2 * tally.in_favour > tally.all) return kHolds;
  return tally.all > 0 && 2 * tally.against >= tally.all ? kFails : kOpen;
}

std::string judge_all(const Tally& tally) {
  if (2 * tally.against > tally.all) return kFails;
  if (tally.against == 0) return 2 * tally.in_favour > tally.all ? kHolds : kOpen;
  return tally.in_favour > 0 ? kInPart : kOpen;
}

std::string judge_above(const Value& value, double limit) {
  return surely_above(value, limit) ? kHolds : surely_below(value, limit) ? kFails : kOpen;
}

std::string judge_below(const Value& value, double limit) {
  return judge_above(negative(value), -limit);
}

std::string judge_mean_above(const std::vector<Case>& datasets, double limit) {
  const std::string of_mean = judge_above(mean_over(datasets), limit);
  const bool exception = std::ranges::any_of(datasets, [&](const Case& one) { return surely_below(one.value, limit); });
  return of_mean == kHolds && exception ? kInPart : of_mean;
}

std::string combined(const std::vector<std::string>& parts) {
  const auto is = [](const char* word) { return [word](const std::string& part) { return part == word; }; };
  if (parts.empty()) return kOpen;
  if (std::ranges::all_of(parts, is(kHolds))) return kHolds;
  if (std::ranges::all_of(parts, is(kFails))) return kFails;
  return std::ranges::any_of(parts, is(kHolds)) || std::ranges::any_of(parts, is(kInPart)) ? kInPart : kOpen;
}

std::string agreed(const std::vector<std::string>& readings) {
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

Verdict make_verdict(const std::string& claim, const std::string& says, const std::string& verdict, const std::string& why,
                     const Value& number, std::int64_t seeds) {
  Verdict result{.claim = claim, .says = says, .verdict = verdict, .why = why, .seeds = seeds};
  if (!std::isnan(number.value)) result.number = number.value;
  result.low = number.low;
  result.high = number.high;
  result.why.erase(result.why.find_last_not_of(' ') + 1);
  return result;
}

}  // namespace holdfast
