#include "judging.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/words.h"

namespace holdfast::experiment {
namespace {

constexpr Judgement kHolds = Judgement::kHolds, kInPart = Judgement::kHoldsInPart, kFails = Judgement::kDoesNotHold,
                    kOpen = Judgement::kNotDecided;

// Beyond this a number of seeds is no plan.
constexpr double kManySeeds = 100;

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

double seeds_needed(const Value& value, double limit) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (std::isnan(value.value) || !value.low || !value.high || value.value == limit) return kNever;
  const double reach = value.value > limit ? value.value - *value.low : *value.high - value.value;
  return std::pow(reach / std::abs(value.value - limit), 2);
}

namespace {

std::string times_as_many(double factor) {
  return factor < 10 ? fmt::format("About {:.1f} times as many seeds", std::max(factor, 1.1))
                     : fmt::format("About {:.0f} times as many seeds", factor);
}

// A number of seeds that can be planned with.
std::optional<double> planned(double factor) {
  return factor <= kManySeeds ? std::optional(std::max(factor, 1.1)) : std::nullopt;
}

// A part of a claim about one number.
ClaimPart open_or_not(const std::string& name, Judgement judgement, const Value& value, double limit) {
  if (judgement != kOpen) return {name, judgement};
  return {name, judgement, what_decides(value, limit), planned(seeds_needed(value, limit))};
}

}  // namespace

std::string what_decides(const Value& value, double limit) {
  if (std::isnan(value.value)) return "It was not measured.";
  if (!value.low || !value.high) return "It has no interval: more seeds would give it one.";
  const double factor = seeds_needed(value, limit);
  if (factor > kManySeeds)
    return fmt::format("Its mean is at the limit: no number of seeds up to {:.0f} times as many decides it.", kManySeeds);
  return times_as_many(factor) + " would decide it, if the mean stays as it is.";
}

void Tally::add_above(const Value& value, double limit, const std::string& name) {
  if (std::isnan(value.value)) return;
  ++all;
  const bool is_for = surely_above(value, limit), is_against = surely_below(value, limit);
  in_favour += is_for ? 1 : 0;
  against += is_against ? 1 : 0;
  likely += value.value >= limit ? 1 : 0;
  if (!is_for && !is_against) {
    needed.push_back(seeds_needed(value, limit));
  } else if (!name.empty()) {
    (is_for ? for_it : against_it).push_back(name);
  }
}

void Tally::add_below(const Value& value, double limit, const std::string& name) {
  add_above(negative(value), -limit, name);
}

double Tally::times() const {
  std::vector<double> sorted = needed;
  std::ranges::sort(sorted);
  const std::int64_t wanted = std::max<std::int64_t>(1, all / 2 + 1 - in_favour - against);
  return wanted <= std::ssize(sorted) ? sorted[static_cast<std::size_t>(wanted - 1)] : std::numeric_limits<double>::infinity();
}

std::string Tally::what_decides() const {
  if (all == 0) return "There is no case: a dataset that counts would decide it.";
  if (open() == 0) return "";
  const double factor = times();
  if (factor > kManySeeds)
    return fmt::format("Even {:.0f} times as many seeds would leave half of the cases open, if the means stay as they are.",
                       kManySeeds);
  return times_as_many(factor) + " would decide more than half of the cases, if the means stay as they are.";
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
  return tally.in_favour > 0 ? kInPart : kFails;
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
  const auto any = [&](Judgement wanted) { return std::ranges::find(parts, wanted) != parts.end(); };
  const bool holds = any(kHolds) || any(kInPart), fails = any(kFails) || any(kInPart);
  if (fails) return holds ? kInPart : kFails;
  return holds && !any(kOpen) ? kHolds : kOpen;
}

Judgement combined(const std::vector<ClaimPart>& parts) {
  std::vector<Judgement> judgements;
  for (const ClaimPart& part : parts) judgements.push_back(part.judgement);
  return combined(judgements);
}

std::optional<double> times_of(Judgement judgement, const Tally& tally) {
  return judgement == kOpen && tally.all > 0 ? planned(tally.times()) : std::nullopt;
}

std::optional<double> times_of(const std::vector<ClaimPart>& parts) {
  std::optional<double> most;
  for (const ClaimPart& part : parts) {
    if (part.judgement != kOpen) continue;
    if (!part.times) return {};
    most = std::max(most.value_or(0), *part.times);
  }
  return most;
}

std::string plain_sentence(Judgement judgement, const std::string& claim) {
  switch (judgement) {
    case kHolds:
      return fmt::format("Yes: {}.", claim);
    case kInPart:
      return fmt::format("Partly: it is true in some cases and not in others that {}.", claim);
    case kFails:
      return fmt::format("No: it is not true that {}.", claim);
    case kOpen:
      break;
  }
  return fmt::format("Not known yet: whether {}.", claim);
}

ClaimPart part_of_most(const std::string& name, const Tally& tally) {
  const Judgement judgement = judge_most(tally);
  return {name, judgement, judgement == kOpen ? tally.what_decides() : "", times_of(judgement, tally)};
}

ClaimPart part_of_all(const std::string& name, const Tally& tally) {
  const Judgement judgement = judge_all(tally);
  return {name, judgement, judgement == kOpen ? tally.what_decides() : "", times_of(judgement, tally)};
}

ClaimPart part_above(const std::string& name, const Value& value, double limit) {
  return open_or_not(name, judge_above(value, limit), value, limit);
}

ClaimPart part_below(const std::string& name, const Value& value, double limit) {
  return part_above(name, negative(value), -limit);
}

ClaimPart part_mean_above(const std::string& name, const std::vector<Case>& datasets, double limit) {
  return open_or_not(name, judge_mean_above(datasets, limit), mean_over(datasets), limit);
}

std::string in_words(const std::vector<ClaimPart>& parts) {
  std::vector<std::string> holds, fails, open;
  for (const ClaimPart& part : parts) {
    if (part.judgement == kHolds) holds.push_back(part.name);
    if (part.judgement == kFails) fails.push_back(part.name);
    if (part.judgement == kInPart) {
      holds.push_back("some of " + part.name);
      fails.push_back("some of " + part.name);
    }
    if (part.judgement == kOpen) open.push_back(part.needs.empty() ? part.name : fmt::format("{} ({})", part.name, part.needs));
  }
  std::vector<std::string> sentences;
  for (const auto& [head, names] : {std::pair("Surely holds", holds), {"Surely refuted", fails}, {"Open", open}}) {
    if (!names.empty()) sentences.push_back(fmt::format("{}: {}.", head, fmt::join(names, "; ")));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string what_settles(Judgement judgement, const Tally& tally) {
  if (judgement == kOpen) return tally.what_decides();
  if (judgement != kInPart || tally.for_it.empty() || tally.against_it.empty()) return "";
  return fmt::format("Surely for it: {}. Surely against it: {}.", fmt::join(tally.for_it, "; "),
                     fmt::join(tally.against_it, "; "));
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
  for (const Case& one : cases) tally.add_above(one.value, limit, one.name);
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
  const auto with_times = [&](Verdict verdict) {
    verdict.times = times_of(verdict.judgement, tally);
    return verdict;
  };
  const std::string settles = what_settles(judge_all(tally), tally);
  const std::string more = also + (also.empty() || also.ends_with(' ') ? "" : " ") + (settles.empty() ? "" : settles + " ");
  if (tally.all == 1) {
    return with_times(make_verdict(claim, says, judge_all(tally),
                                   fmt::format("Number: {}, {}; above {} is for the claim. {}", what, lowest->name, limit, more),
                                   lowest->value, seeds));
  }
  return with_times(make_verdict(
      claim, says, judge_all(tally),
      fmt::format("Number: share of the cases in which {} is above {}; {}. It reaches lowest in {}, {}. {}Cases: {}.", what,
                  limit, outcome_above(cases, limit), lowest->name, words(lowest->value), more, words(cases)),
      tally.share(), seeds));
}

}  // namespace holdfast::experiment
