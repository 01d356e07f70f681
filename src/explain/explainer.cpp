#include "holdfast/explain/explainer.h"

#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {

std::unique_ptr<Linearization> Explainer::linearize(const ExplainTask& task) const {
  if (!task.model.capabilities().double_backward) usage_error("{}: the model cannot be differentiated twice", name());
  const at::AutoGradMode with_graph(true);
  ExplainTask here = task;
  here.samples.inputs = task.samples.inputs.detach().requires_grad_();
  at::Tensor maps = differentiable(here);
  const at::NoGradGuard no_graph;
  at::Tensor log_scale = at::zeros({maps.size(0)}, maps.options().requires_grad(false));
  return hold_graph(here.samples.inputs, std::move(maps), std::move(log_scale), task_logits(task, task.samples.inputs));
}

void Explainer::check_task(const ExplainTask& task) const {
  check(task.model);
}

at::Tensor Explainer::differentiable(const ExplainTask&) const {
  usage_error("{} cannot be differentiated", name());
}

at::Tensor maps_of_elements(const at::Tensor& maps, const Schema& schema) {
  if (&schema.of_maps(maps.flatten(1).size(1)) == &schema) return maps;
  const std::vector<TableFeature> features = schema.table_features();
  std::vector<std::int64_t> feature_of(static_cast<std::size_t>(schema.layout.inputs()));
  std::vector<double> share(feature_of.size());
  for (std::size_t i = 0; i < features.size(); ++i) {
    for (const std::int64_t column : features[i].columns) {
      feature_of[static_cast<std::size_t>(column)] = static_cast<std::int64_t>(i);
      share[static_cast<std::size_t>(column)] = 1.0 / static_cast<double>(features[i].columns.size());
    }
  }
  const at::Tensor shares = at::tensor(at::ArrayRef<double>(share), at::kDouble).to(maps.options());
  return maps.index_select(1, at::tensor(at::ArrayRef<std::int64_t>(feature_of), at::kLong).to(maps.device())) * shares;
}

// at::argmax promises the first of several equal maxima.
at::Tensor predicted_class(const at::Tensor& logits) {
  return logits.argmax(1);
}

}  // namespace holdfast::explain
