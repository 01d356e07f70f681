#include "layer_explainer.h"

#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast {

void LayerExplainer::check(const Model& model) const {
  if (!model.capabilities().gradients) usage_error("{}: the model has no gradients by its inputs", name());
  const std::string called = model.name().empty() ? "the model" : model.name();
  if (model.network() == nullptr) usage_error("{} needs the layers of a network; {} is opaque", name(), called);
  check_network(*model.network(), called);
}

Explanation LayerExplainer::attribute(const ExplainTask& task) const {
  check(task.model);
  const at::NoGradGuard no_graph;
  Traced traced = trace(task, *task.model.network(), task.inputs.detach().requires_grad_());
  traced.maps = traced.maps.detach();
  traced.logits = traced.logits.detach();
  return traced;
}

std::unique_ptr<Linearization> LayerExplainer::linearize(const ExplainTask& task) const {
  check(task.model);
  const at::AutoGradMode with_graph(true);
  at::Tensor inputs = task.inputs.detach().requires_grad_();
  Traced traced = trace(task, *task.model.network(), inputs);
  return hold_graph(std::move(inputs), std::move(traced.maps), std::move(traced.log_scale), std::move(traced.logits));
}

// The scale is multiplied back, as a constant, so that losses see true magnitudes.
at::Tensor LayerExplainer::differentiable(const ExplainTask& task) const {
  HOLDFAST_CHECK(task.inputs.requires_grad());
  check(task.model);
  const at::AutoGradMode with_graph(true);
  const Traced traced = trace(task, *task.model.network(), task.inputs);
  std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(traced.maps.dim()), 1);
  one_a_sample[0] = traced.maps.size(0);
  return traced.maps * traced.log_scale.exp().view(one_a_sample);
}

}  // namespace holdfast
