#include "holdfast/metric/compare.h"

#include "holdfast/core/error.h"
#include "holdfast/metric/batch_metric.h"

namespace holdfast::metric {
namespace {

template <class Number>
std::vector<double> compare_each(const Metric& metric, const Schema& schema, std::span<const Number> original,
                                 std::span<const Number> perturbed) {
  const auto inputs = static_cast<std::size_t>(schema.layout.inputs());
  const auto features = static_cast<std::size_t>(schema.layout.features());
  const std::size_t count = original.size() / inputs;
  HOLDFAST_CHECK(original.size() == count * inputs && original.size() == perturbed.size());
  if (const auto* batched = dynamic_cast<const BatchMetric*>(&metric); batched != nullptr && count > 0) {
    std::vector<double> all_first(count * features), all_second(count * features);
    fold_into(schema.layout, original, all_first);
    fold_into(schema.layout, perturbed, all_second);
    return batched->compare_rows(all_first, all_second, schema);
  }
  std::vector<double> first(features), second(features), values(count);
  for (std::size_t i = 0; i < count; ++i) {
    fold_into(schema.layout, original.subspan(i * inputs, inputs), first);
    fold_into(schema.layout, perturbed.subspan(i * inputs, inputs), second);
    values[i] = metric.compare({first, schema}, {second, schema});
  }
  return values;
}

}  // namespace

std::vector<double> compare_maps(const Metric& metric, const Schema& schema, std::span<const float> original,
                                 std::span<const float> perturbed) {
  return compare_each(metric, schema, original, perturbed);
}

std::vector<double> compare_maps(const Metric& metric, const Schema& schema, std::span<const double> original,
                                 std::span<const double> perturbed) {
  return compare_each(metric, schema, original, perturbed);
}

}  // namespace holdfast::metric
