#include "holdfast/metric/batch_metric.h"

#include <cmath>
#include <limits>

#include "chance.h"
#include "holdfast/core/error.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::metric {

void BatchMetric::check(const Schema& schema) const {
  if (facts_.top_count && *facts_.top_count > schema.layout.features())
    usage_error("{}: the map has {} features; choose k <= {}", name(), schema.layout.features(), schema.layout.features());
}

double BatchMetric::compare(const MapView& original, const MapView& perturbed) const {
  return compare_rows(original.values, perturbed.values, original.schema).front();
}

std::optional<double> BatchMetric::chance(const MapView& original) const {
  std::vector<double> orders, repeated;
  (void)sampled_chance_of_values(original, [&](std::span<const double> map) {
    orders.insert(orders.end(), map.begin(), map.end());
    repeated.insert(repeated.end(), original.values.begin(), original.values.end());
    return 0.0;
  });
  double sum = 0;
  std::int64_t defined = 0;
  for (const double value : compare_rows(repeated, orders, original.schema)) {
    if (std::isnan(value)) continue;
    sum += value;
    ++defined;
  }
  return defined == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(defined);
}

std::vector<std::int64_t> BatchMetric::top_set(const MapView& map) const {
  return facts_.top_count ? top_k_set(map.values, *facts_.top_count) : std::vector<std::int64_t>{};
}

std::vector<double> compare_batches(const Metric& metric, const MapBatch& original, const MapBatch& perturbed) {
  HOLDFAST_CHECK(original.count == perturbed.count);
  if (const auto* batched = dynamic_cast<const BatchMetric*>(&metric); batched != nullptr && original.count > 0)
    return batched->compare_rows(original.values, perturbed.values, *original.schema);
  std::vector<double> values;
  for (std::int64_t i = 0; i < original.count; ++i) values.push_back(metric.compare(original[i], perturbed[i]));
  return values;
}

std::vector<double> gathered_rows(const MapBatch& maps, std::span<const std::int64_t> rows) {
  std::vector<double> values;
  for (const std::int64_t row : rows) values.insert(values.end(), maps[row].values.begin(), maps[row].values.end());
  return values;
}

}  // namespace holdfast::metric
