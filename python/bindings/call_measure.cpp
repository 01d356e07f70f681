#include "calls.h"

#include <cmath>

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/metric/compare.h"
#include "plain_values.h"

namespace holdfast::python {
namespace {

// Maps in the precision that the command line reads them in: integers and float64 as float64, others as float32.
at::Tensor checked_maps(const at::Tensor& maps, const std::string& what) {
  const at::Tensor plain = checked_batch(maps, what);
  const bool fits_float = plain.is_floating_point() && plain.scalar_type() != at::kDouble;
  return plain.to(at::TensorOptions().device(at::kCPU).dtype(fits_float ? at::kFloat : at::kDouble));
}

// One map after the other, without the levels: for large batches and loops.
std::vector<Compared> compared_alone(const std::vector<std::unique_ptr<Metric>>& chosen, const at::Tensor& original,
                                     const at::Tensor& perturbed, const Schema& schema) {
  const at::ScalarType type =
      original.scalar_type() == at::kFloat && perturbed.scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
  const at::Tensor first = original.to(type).contiguous(), second = perturbed.to(type).contiguous();
  const auto count = static_cast<std::size_t>(first.numel());
  std::vector<Compared> results;
  for (const std::unique_ptr<Metric>& metric : chosen) {
    AT_DISPATCH_FLOATING_TYPES(type, "measure", [&] {
      const std::span<const scalar_t> a(first.const_data_ptr<scalar_t>(), count), b(second.const_data_ptr<scalar_t>(), count);
      const std::vector<double> values = compare_maps(*metric, schema, a, b);
      double sum = 0;
      std::int64_t defined = 0;
      for (const double value : values) {
        if (std::isnan(value)) continue;
        sum += value;
        ++defined;
      }
      const auto undefined = static_cast<std::int64_t>(values.size()) - defined;
      const Json mean = defined == 0 ? Json() : Json(sum / static_cast<double>(defined));
      results.push_back(
          {{{"name", metric->name()}, {"mean", mean}, {"count", defined}, {"undefined", undefined}}, to_tensor(values)});
    });
  }
  return results;
}

}  // namespace

std::vector<Compared> measure(const at::Tensor& original, const at::Tensor& perturbed, const std::vector<std::string>& calls,
                              const std::shared_ptr<const Schema>& given, const std::optional<at::Tensor>& labels,
                              std::uint64_t seed, bool levels) {
  std::vector<std::unique_ptr<Metric>> chosen;
  for (const std::string& call : calls) chosen.push_back(metrics().make(call));
  const at::Tensor first = checked_maps(original, "original"), second = checked_maps(perturbed, "perturbed");
  if (first.sizes() != second.sizes()) {
    input_error("the original maps have shape {}, but the perturbed ones have shape {}", to_string(first.sizes().vec()),
                to_string(second.sizes().vec()));
  }
  const std::shared_ptr<const Schema> of_maps = given ? share_schema(given->of_maps(first.flatten(1).size(1))) : given;
  const std::shared_ptr<const Schema> shared = schema_of(of_maps, "the schema", nullptr, first, "original");
  const Schema& schema = *shared;
  for (const std::unique_ptr<Metric>& metric : chosen) metric->check(schema);
  if (!levels) return compared_alone(chosen, first, second, schema);
  std::vector<std::int64_t> classes;
  if (labels) classes = to_vector(checked_labels(*labels, first.size(0), 0, "labels"));
  const MapBatch clean = fold_maps(first, schema), moved = fold_maps(second, schema);

  std::vector<Compared> results;
  for (const std::unique_ptr<Metric>& metric : chosen) {
    const Levels level = compute_levels(*metric, clean, classes, {.seed = seed});
    const Assessment assessment = assess(*metric, clean, moved, level, seed);
    warn_of_ties(assessment);
    results.push_back({summary_of(assessment), to_tensor(assessment.values)});
  }
  return results;
}

}  // namespace holdfast::python
