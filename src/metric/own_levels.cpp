// Lift, effective sets and own advantage: what `specific` is never shown without.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "bootstrap.h"
#include "holdfast/core/error.h"
#include "holdfast/metric/levels.h"
#include "rounding.h"

namespace holdfast::metric {
namespace own_levels {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// The number of each sample's set: 0 for all that an attack changed.
std::vector<std::size_t> number_sets(const TopSets& sets) {
  std::map<std::vector<std::int64_t>, std::size_t> numbers;
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < sets.clean.size(); ++i) {
    const bool holds = sets.clean[i] == sets.perturbed[i];
    result.push_back(holds ? numbers.emplace(sets.clean[i], numbers.size() + 1).first->second : 0);
  }
  return result;
}

double exp_entropy(const std::vector<std::int64_t>& counts, std::size_t all) {
  double entropy = 0;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(all);
    if (count > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

bool surely_reaches(const Interval& interval, double least) {
  return interval.low >= least;
}
bool surely_misses(const Interval& interval, double least) {
  return interval.high < least;
}

}  // namespace own_levels

std::optional<TopSets> top_sets(const Metric& metric, const MapBatch& clean, const MapBatch& perturbed) {
  if (!metric.top_count()) return std::nullopt;
  TopSets sets;
  for (std::int64_t i = 0; i < clean.count; ++i) {
    sets.clean.push_back(metric.top_set(clean[i]));
    sets.perturbed.push_back(metric.top_set(perturbed[i]));
    for (std::vector<std::int64_t>* set : {&sets.clean.back(), &sets.perturbed.back()}) std::sort(set->begin(), set->end());
  }
  return sets;
}

Interval effective_sets(const TopSets& sets, std::uint64_t seed) {
  HOLDFAST_CHECK(sets.clean.size() == sets.perturbed.size());
  const std::vector<std::size_t> numbers = own_levels::number_sets(sets);
  std::vector<std::int64_t> counts(numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) + 1);
  return bootstrap(numbers.size(), seed, "effective sets", [&](std::span<const std::uint32_t> positions) {
    std::fill(counts.begin(), counts.end(), 0);
    for (const std::uint32_t position : positions) ++counts[numbers[position]];
    return own_levels::exp_entropy(counts, positions.size());
  });
}

Interval lift(std::span<const double> values, const Interval& value, std::span<const PairValue> pairs, std::uint64_t seed) {
  struct Defined {
    std::uint32_t first, second;
    double value;
  };
  std::vector<Defined> defined;  // small and without a branch: they are gone through in every resample
  for (const PairValue& pair : pairs) {
    if (!std::isnan(pair.value))
      defined.push_back({static_cast<std::uint32_t>(pair.first), static_cast<std::uint32_t>(pair.second), pair.value});
  }
  std::vector<double> times(values.size());  // that each sample was drawn
  Interval result = bootstrap(values.size(), seed, "lift", [&](std::span<const std::uint32_t> positions) {
    std::fill(times.begin(), times.end(), 0.0);
    double sum = 0, count = 0, between = 0, weight = 0;
    for (const std::uint32_t position : positions) {
      ++times[position];
      if (std::isnan(values[position])) continue;
      sum += values[position];
      ++count;
    }
    for (const Defined& pair : defined) {
      const double both = times[pair.first] * times[pair.second];
      between += both * pair.value;
      weight += both;
    }
    return count > 0 && weight > 0 ? sum / count - between / weight : own_levels::kNothing;
  });
  const bool all_equal = std::all_of(values.begin(), values.end(),
                                     [&](double one) { return std::isnan(one) || equal_up_to_rounding(one, value.median); });
  if (all_equal && value.count >= 2) {  // a bootstrap would claim to know their mean exactly
    result.low += value.low - value.mean;
    result.high += value.high - value.mean;
  }
  return result;
}

Interval own_advantage(std::span<const double> own, std::span<const double> other, std::uint64_t seed) {
  HOLDFAST_CHECK(own.size() == other.size());
  std::vector<std::size_t> defined;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!std::isnan(own[i]) && !std::isnan(other[i])) defined.push_back(i);
  }
  return bootstrap(defined.size(), seed, "own advantage", [&](std::span<const std::uint32_t> positions) {
    double own_sum = 0, other_sum = 0;
    for (const std::uint32_t position : positions) {
      own_sum += own[defined[position]];
      other_sum += other[defined[position]];
    }
    return own_sum > 0 ? (own_sum - other_sum) / own_sum : own_levels::kNothing;
  });
}

std::optional<Judgement> robust_and_specific(const Assessment& assessment) {
  const auto& [lift, sets, own] = std::tie(assessment.lift, assessment.effective_sets, assessment.own_advantage);
  if (!lift || !sets || !own || assessment.direction != Direction::kHigherIsMoreAlike) return std::nullopt;
  if (own_levels::surely_reaches(*lift, kEnoughLift) && own_levels::surely_reaches(*sets, kEnoughSets) && own->low > 0)
    return Judgement::kHolds;
  const bool fails =
      own_levels::surely_misses(*lift, kEnoughLift) || own_levels::surely_misses(*sets, kEnoughSets) || own->high <= 0;
  return fails ? Judgement::kDoesNotHold : Judgement::kNotDecided;
}

}  // namespace holdfast::metric
