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

// at::argmax promises the first of several equal maxima.
at::Tensor predicted_class(const at::Tensor& logits) {
  return logits.argmax(1);
}

}  // namespace holdfast::explain
