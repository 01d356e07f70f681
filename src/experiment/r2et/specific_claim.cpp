// The verdict of r2et/specific, and how the weights of a method are chosen.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/metric/levels.h"
#include "specific.h"

namespace holdfast::experiment::paper::r2et::robust {

std::vector<std::size_t> choose(const std::vector<CandidateScore>& candidates, double least) {
  const auto score = [&](const CandidateScore& one) {
    const bool within = one.area >= least;
    const double lift = std::isnan(one.lift) ? -std::numeric_limits<double>::infinity() : one.lift;
    const bool meets = within && one.is_robust_and_specific;
    return std::tuple(within, meets, within && !meets ? lift : one.area, std::isnan(one.between) ? -1 : -one.between);
  };
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (chosen.empty() || candidates[chosen.back()].method != candidates[i].method) {
      chosen.push_back(i);
    } else if (score(candidates[i]) > score(candidates[chosen.back()])) {
      chosen.back() = i;
    }
  }
  return chosen;
}

std::vector<double> column(const std::vector<Row>& rows, double Row::*number) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(row.*number);
  return values;
}

namespace {

constexpr double kEnoughTables = 3, kTables = 6;

// A number over seeds against a limit; one that is the same for every seed is what it is.
Judgement reaches(const std::vector<double>& numbers, double limit, bool above) {
  const Value value = over_seeds(numbers);
  if (std::isnan(value.value)) return Judgement::kNotDecided;
  const double low = value.low.value_or(value.value), high = value.high.value_or(value.value);
  if (above ? low > limit : low >= limit) return Judgement::kHolds;
  return (above ? high <= limit : high < limit) ? Judgement::kDoesNotHold : Judgement::kNotDecided;
}

}  // namespace

Judgement is_robust_and_specific(const std::vector<Row>& rows) {
  const std::vector<Judgement> parts{reaches(column(rows, &Row::lift), metric::kEnoughLift, false),
                                     reaches(column(rows, &Row::sets), metric::kEnoughSets, false),
                                     reaches(column(rows, &Row::own), 0, true)};
  if (std::ranges::find(parts, Judgement::kDoesNotHold) != parts.end()) return Judgement::kDoesNotHold;
  return std::ranges::all_of(parts, [](Judgement one) { return one == Judgement::kHolds; }) ? Judgement::kHolds
                                                                                            : Judgement::kNotDecided;
}

TableFinding judge_table(const std::string& dataset, const std::vector<Networks>& methods) {
  TableFinding found{.dataset = dataset};
  for (const Networks& one : methods) {
    const Value lift = over_seeds(column(one.rows, &Row::lift));
    if (found.best.empty() || lift.value > found.lift.value) {
      found.best = one.method;
      found.lift = lift;
    }
    const Judgement accurate = reaches(one.losses, -kMostLoss, true), both = is_robust_and_specific(one.rows);
    if (accurate == Judgement::kDoesNotHold || both == Judgement::kDoesNotHold) continue;
    const bool holds = accurate == Judgement::kHolds && both == Judgement::kHolds;
    if (holds) found.met_by.push_back(one.method);
    if (holds || found.judgement != Judgement::kHolds) found.judgement = holds ? Judgement::kHolds : Judgement::kNotDecided;
  }
  return found;
}

Finding judge(const std::vector<TableFinding>& tables) {
  std::vector<std::string> met, all;
  double open = kTables - static_cast<double>(tables.size());  // what was not tried decides nothing
  Value highest;
  for (const TableFinding& one : tables) {
    if (one.judgement == Judgement::kHolds) met.push_back(fmt::format("{} (by {})", one.dataset, fmt::join(one.met_by, "; ")));
    if (one.judgement == Judgement::kNotDecided) ++open;
    if (std::isnan(highest.value) || one.lift.value > highest.value) highest = one.lift;
    all.push_back(fmt::format("{}: the highest lift is {}, of {}.", one.dataset, words(one.lift), one.best));
  }
  const auto count = static_cast<double>(met.size());
  const Judgement judgement = count >= kEnoughTables         ? Judgement::kHolds
                              : count + open < kEnoughTables ? Judgement::kDoesNotHold
                                                             : Judgement::kNotDecided;
  return {judgement,
          {{"met", met.empty() ? "nowhere" : fmt::format("on {}", fmt::join(met, ", "))},
           {"all", fmt::format("{}", fmt::join(all, " "))}},
          highest};
}

}  // namespace holdfast::experiment::paper::r2et::robust
