#include "holdfast/data/samples.h"

#include <algorithm>

#include "holdfast/core/large_tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::data {
namespace {

// Applies `change` to every tensor that has one row a sample.
template <class Change>
Samples with_rows(Samples samples, const Change& change) {
  for (at::Tensor* tensor : {&samples.inputs, &samples.targets, &samples.labels, &samples.ids}) {
    if (tensor->defined()) *tensor = change(*tensor);
  }
  return samples;
}

}  // namespace

Samples Samples::slice(std::int64_t begin, std::int64_t end) const {
  return with_rows(*this, [&](const at::Tensor& tensor) { return tensor.slice(0, begin, end); });
}

Samples Samples::select(const at::Tensor& positions) const {
  return with_rows(*this, [&](const at::Tensor& tensor) { return large_select(tensor, positions); });
}

Samples Samples::moved_to(const at::Tensor& points) const {
  Samples samples = *this;
  samples.inputs = points;
  return samples;
}

Samples Samples::to(const at::TensorOptions& like) const {
  Samples samples = *this;
  for (at::Tensor* tensor : {&samples.inputs, &samples.baseline, &samples.background}) {
    if (tensor->defined()) *tensor = tensor->to(like).contiguous();
  }
  if (samples.targets.defined()) samples.targets = samples.targets.to(like.device());
  return samples;
}

at::Tensor context_elements(const Layout& layout) {
  if (layout.context == 0) return {};
  const std::vector<std::int64_t> features = layout.element_features();
  return (at::tensor(features, at::kLong) < 0).view(layout.sample_shape());
}

at::Tensor with_context_of(const at::Tensor& others, const at::Tensor& rows, const Layout& layout) {
  if (layout.context == 0) return rows;
  return at::where(context_elements(layout).to(rows.device()), others, rows);
}

std::shared_ptr<const Schema> share_schema(const Schema& schema) {
  auto shared = std::make_shared<Schema>(schema);
  shared->describe_table();
  return shared;
}

Samples samples_of(const Dataset& dataset, const std::vector<std::int64_t>& rows) {
  return {.inputs = dataset.inputs_of(rows),
          .labels = dataset.labels_of(rows),
          .ids = at::tensor(rows, at::kLong),
          .schema = share_schema(dataset.schema),
          .background = background_rows(dataset)};
}

at::Tensor background_rows(const Dataset& dataset) {
  std::vector<std::int64_t> rows = dataset.rows(dataset.train.empty() ? "all" : "train");
  rows.resize(std::min<std::size_t>(rows.size(), static_cast<std::size_t>(kBackgroundRows)));
  if (rows.empty()) return {};
  const at::Tensor inputs = dataset.inputs_of(rows);
  const at::Tensor finite = at::isfinite(inputs).flatten(1).all(1).nonzero().squeeze(1);
  return finite.numel() > 0 ? inputs.index_select(0, finite) : at::Tensor();
}

}  // namespace holdfast::data
