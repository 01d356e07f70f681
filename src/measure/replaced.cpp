#include "holdfast/measure/replaced.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "units.h"

namespace holdfast::measure {

at::Tensor elements_of_features(const Schema& schema, std::span<const std::vector<std::int64_t>> features) {
  const Units units(schema, /*whole_groups=*/true);
  std::vector<std::int64_t> shape = schema.layout.sample_shape();
  shape.insert(shape.begin(), static_cast<std::int64_t>(features.size()));
  at::Tensor elements = at::empty(shape, at::kByte);
  std::uint8_t* next = elements.mutable_data_ptr<std::uint8_t>();
  for (const std::vector<std::int64_t>& own : features) next = std::ranges::copy(units.elements_of(own), next).out;
  return elements.to(at::kBool);
}

at::Tensor target_probability(const Model& model, const at::Tensor& inputs, const at::Tensor& targets) {
  const at::NoGradGuard no_graph;
  return class_scores(model.logits(inputs), targets);
}

at::Tensor effect_of_replacing(const Model& model, const Samples& samples, const at::Tensor& clean, const at::Tensor& elements,
                               const at::Tensor& rows) {
  HOLDFAST_CHECK(elements.numel() == samples.inputs.numel() && rows.sizes() == samples.inputs.sizes());
  const at::NoGradGuard no_graph;
  // A grid of one channel may come without a dimension for it.
  const at::Tensor mixed = at::where(elements.view_as(rows).to(samples.inputs.device()), rows, samples.inputs);
  return (target_probability(model, mixed, samples.targets) - clean).abs();
}

}  // namespace holdfast::measure
