#include "holdfast/metric/levels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "holdfast/core/log.h"
#include "holdfast/core/rng.h"
#include "holdfast/metric/batch_metric.h"
#include "rounding.h"

namespace holdfast::metric {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// The mean of the values that are defined; nothing when none is.
class Mean {
 public:
  void add(double value) {
    if (std::isnan(value)) return;
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    if (count_ == 0) return std::nullopt;
    return sum_ / static_cast<double>(count_);
  }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

using SamplePair = std::pair<std::int64_t, std::int64_t>;

std::int64_t pair_count(const std::vector<std::int64_t>& group) {
  const auto size = static_cast<std::int64_t>(group.size());
  return size * (size - 1);
}

// Pair number `index` of a group: each first member has size-1 partners, itself left out.
SamplePair pair_at(const std::vector<std::int64_t>& group, std::int64_t index) {
  const auto partners = static_cast<std::int64_t>(group.size()) - 1;
  const std::int64_t first = index / partners;
  const std::int64_t second = index % partners;
  return {group[static_cast<std::size_t>(first)], group[static_cast<std::size_t>(second < first ? second : second + 1)]};
}

// Gives ordered pairs of different samples within each group, sorted: all of them when there are no more than `limit`, else
// `limit` different ones drawn uniformly. They are ordered because a metric need not be symmetric.
std::vector<SamplePair> pairs_within(const std::vector<std::vector<std::int64_t>>& groups, std::int64_t limit,
                                     RandomStream stream) {
  std::int64_t total = 0;
  for (const auto& group : groups) total += pair_count(group);
  const auto pair_number = [&](std::int64_t index) {
    auto group = groups.begin();
    for (; index >= pair_count(*group); ++group) index -= pair_count(*group);
    return pair_at(*group, index);
  };

  std::set<SamplePair> chosen;
  if (total <= limit) {
    for (std::int64_t index = 0; index < total; ++index) chosen.insert(pair_number(index));
  } else {
    while (static_cast<std::int64_t>(chosen.size()) < limit) {
      chosen.insert(pair_number(static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(total)))));
    }
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<PairValue> compare_pairs_at_once(const BatchMetric& metric, const MapBatch& maps,
                                             const std::vector<SamplePair>& pairs) {
  std::vector<PairValue> values;
  if (pairs.empty()) return values;
  std::vector<std::int64_t> first, second;
  for (const SamplePair& pair : pairs) {
    first.push_back(pair.first);
    second.push_back(pair.second);
  }
  const std::vector<double> found = metric.compare_rows(gathered_rows(maps, first), gathered_rows(maps, second), *maps.schema);
  for (std::size_t i = 0; i < pairs.size(); ++i) values.push_back({first[i], second[i], found[i]});
  return values;
}

// The metric of every pair; they are sorted, so that each original is worked out once.
std::vector<PairValue> compare_pairs(const Metric& metric, const MapBatch& maps, const std::vector<SamplePair>& pairs) {
  if (const auto* batched = dynamic_cast<const BatchMetric*>(&metric)) return compare_pairs_at_once(*batched, maps, pairs);
  std::vector<PairValue> values;
  std::unique_ptr<PreparedMetric> prepared;
  std::int64_t prepared_for = -1;
  for (const auto& [first, second] : pairs) {
    if (first != prepared_for) prepared = metric.prepare(maps[first]);
    prepared_for = first;
    values.push_back({first, second, prepared->value(maps[second])});
  }
  return values;
}

double mean_of_pairs(const std::vector<PairValue>& pairs) {
  Mean mean;
  for (const PairValue& pair : pairs) mean.add(pair.value);
  return mean.value().value_or(kUndefined);
}

std::vector<std::vector<std::int64_t>> by_label(std::span<const std::int64_t> labels) {
  std::map<std::int64_t, std::vector<std::int64_t>> classes;
  for (std::size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(static_cast<std::int64_t>(i));
  std::vector<std::vector<std::int64_t>> groups;
  for (auto& [label, members] : classes) groups.push_back(std::move(members));
  return groups;
}

std::int64_t count_top_sets(const Metric& metric, const MapBatch& maps) {
  if (!metric.top_count()) return 0;
  std::set<std::vector<std::int64_t>> sets;
  for (std::int64_t i = 0; i < maps.count; ++i) sets.insert(metric.top_set(maps[i]));
  return static_cast<std::int64_t>(sets.size());
}

double share_of_tied(const Metric& metric, const MapBatch& maps) {
  if (!metric.top_count() || maps.count == 0) return 0;
  std::int64_t tied = 0;
  for (std::int64_t i = 0; i < maps.count; ++i) tied += metric.ties_decide(maps[i]);
  return static_cast<double>(tied) / static_cast<double>(maps.count);
}

// Mean size of the top sets, for metrics whose sets may be smaller than k.
std::optional<double> mean_found(const Metric& metric, const MapBatch& maps) {
  Mean mean;
  for (std::int64_t i = 0; i < maps.count; ++i) {
    const std::optional<std::int64_t> found = metric.found(maps[i]);
    if (!found) return std::nullopt;
    mean.add(static_cast<double>(*found));
  }
  return mean.value();
}

std::optional<double> if_defined(double value) {
  if (std::isnan(value)) return std::nullopt;
  return value;
}
std::optional<Interval> if_defined(const Interval& interval) {
  if (std::isnan(interval.mean)) return std::nullopt;
  return interval;
}

Json number(const std::optional<double>& value) {
  return number_json(value.value_or(kUndefined));
}
Json mean_of(const std::optional<Interval>& interval) {
  return interval ? number_json(interval->mean) : Json();
}
Json ends_of(const std::optional<Interval>& interval) {
  if (!interval || std::isnan(interval->low)) return {};
  return Json::array({number_json(interval->low), number_json(interval->high)});
}

}  // namespace

double above_level(double value, double level, double perfect) {
  return equal_up_to_rounding(level, perfect) ? kUndefined : (value - level) / (perfect - level);
}

MapView MapBatch::operator[](std::int64_t sample) const {
  HOLDFAST_CHECK(schema != nullptr && sample >= 0 && sample < count);
  const auto features = static_cast<std::size_t>(schema->layout.features());
  count_looked_at(features * sizeof(double));
  return {std::span(values).subspan(static_cast<std::size_t>(sample) * features, features), *schema};
}

Levels compute_levels(const Metric& metric, const MapBatch& clean, std::span<const std::int64_t> labels,
                      const BetweenOptions& options) {
  HOLDFAST_CHECK(labels.empty() || static_cast<std::int64_t>(labels.size()) == clean.count);
  Levels result;
  for (std::int64_t i = 0; i < clean.count; ++i) {
    if (const auto chance = metric.chance(clean[i])) result.chance.push_back(*chance);
  }
  HOLDFAST_CHECK(result.chance.empty() || static_cast<std::int64_t>(result.chance.size()) == clean.count);

  std::vector<std::int64_t> everyone(static_cast<std::size_t>(clean.count));
  std::iota(everyone.begin(), everyone.end(), 0);
  const auto compare = [&](const std::vector<std::vector<std::int64_t>>& groups, std::string_view purpose) {
    return compare_pairs(metric, clean, pairs_within(groups, options.pairs, RandomStream(options.seed, purpose)));
  };
  result.pairs = compare({everyone}, "between");
  result.between = mean_of_pairs(result.pairs);
  result.between_same_class = mean_of_pairs(compare(by_label(labels), "between same class"));
  result.distinct_top_sets = count_top_sets(metric, clean);
  result.tied_share = share_of_tied(metric, clean);
  result.found = mean_found(metric, clean);
  return result;
}

Assessment assess(const Metric& metric, const MapBatch& clean, const MapBatch& perturbed, const Levels& levels,
                  std::uint64_t seed) {
  HOLDFAST_CHECK(clean.count == perturbed.count);
  Assessment result{.metric = metric.name(), .direction = metric.direction()};
  Mean chance, adjusted, specific;
  result.values = compare_batches(metric, clean, perturbed);
  for (std::int64_t i = 0; i < clean.count; ++i) {
    const double value = result.values[static_cast<std::size_t>(i)];
    specific.add(above_level(value, levels.between, metric.perfect()));
    if (levels.chance.empty()) continue;
    chance.add(levels.chance[static_cast<std::size_t>(i)]);
    adjusted.add(above_level(value, levels.chance[static_cast<std::size_t>(i)], metric.perfect()));
  }
  result.value =
      mean_interval(result.values, seed, std::min(metric.floor(), metric.perfect()), std::max(metric.floor(), metric.perfect()));
  result.chance = chance.value();
  result.adjusted = adjusted.value();
  result.specific = specific.value();
  result.between = if_defined(levels.between);
  result.lift = if_defined(lift(result.values, result.value, levels.pairs, seed));
  if (clean.schema->layout.kind == Layout::Kind::kVector) {
    if (const std::optional<TopSets> sets = top_sets(metric, clean, perturbed))
      result.effective_sets = if_defined(effective_sets(*sets, seed));
  }
  result.between_same_class = if_defined(levels.between_same_class);
  result.distinct_top_sets = levels.distinct_top_sets;
  result.tied_share = levels.tied_share;
  result.tied_perturbed = share_of_tied(metric, perturbed);
  result.chance_is_exact = metric.chance_is_exact();
  result.found = levels.found;
  result.found_perturbed = mean_found(metric, perturbed);
  return result;
}

void warn_of_ties(const Assessment& assessment) {
  if (assessment.tied_share == 0 && assessment.tied_perturbed == 0) return;
  log_warning(
      "{}: equal values decide the top set of {:.3g} % of the original and {:.3g} % of the perturbed maps; there the order of "
      "the "
      "features decides, not the model",
      assessment.metric, 100 * assessment.tied_share, 100 * assessment.tied_perturbed);
}

Json to_json(const Assessment& assessment) {
  Json values = Json::array();
  for (const double value : assessment.values) values.push_back(number_json(value));
  const std::optional<Judgement> judgement = robust_and_specific(assessment);
  return {{"name", assessment.metric},
          {"mean", number_json(assessment.value.mean)},
          {"low", number_json(assessment.value.low)},
          {"high", number_json(assessment.value.high)},
          {"median", number_json(assessment.value.median)},
          {"count", assessment.value.count},
          {"undefined", static_cast<std::int64_t>(assessment.values.size()) - assessment.value.count},
          {"chance", number(assessment.chance)},
          {"chance_is_exact", assessment.chance_is_exact},
          {"adjusted", number(assessment.adjusted)},
          {"between", number(assessment.between)},
          {"between_same_class", number(assessment.between_same_class)},
          {"specific", number(assessment.specific)},
          {"lift", mean_of(assessment.lift)},
          {"lift_interval", ends_of(assessment.lift)},
          {"effective_sets", mean_of(assessment.effective_sets)},
          {"effective_sets_interval", ends_of(assessment.effective_sets)},
          {"own_advantage", mean_of(assessment.own_advantage)},
          {"own_advantage_interval", ends_of(assessment.own_advantage)},
          {"robust_and_specific", judgement ? Json(to_string(*judgement)) : Json()},
          {"distinct_top_sets", assessment.distinct_top_sets},
          {"tied_share", assessment.tied_share},
          {"tied_perturbed", assessment.tied_perturbed},
          {"found", number(assessment.found)},
          {"found_perturbed", number(assessment.found_perturbed)},
          {"values", std::move(values)}};
}

}  // namespace holdfast::metric
