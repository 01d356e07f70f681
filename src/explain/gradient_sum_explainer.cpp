#include "gradient_sum.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {

GradientSumExplainer::GradientSumExplainer(const Options& options, Summand summand, bool magnitudes)
    : Explainer(options.canonical()),
      sum_{.quantity = parse_explained_quantity(options.word("target")),
           .summand = summand,
           .magnitudes = magnitudes,
           .projection = Projection(options, name())} {}

void GradientSumExplainer::check(const Model& model) const {
  if (!model.capabilities().gradients)
    usage_error("{}: the model has no gradients by its inputs; occlusion and shapley need none", name());
}

void GradientSumExplainer::check_task(const ExplainTask& task) const {
  check(task.model);
  (void)projects(task);  // throws when groups are asked for and there are none
}

Explanation GradientSumExplainer::attribute(const ExplainTask& task) const {
  check_task(task);
  return sum_.attribute(task, *points(task));
}

std::unique_ptr<Linearization> GradientSumExplainer::linearize(const ExplainTask& task) const {
  check_task(task);
  return sum_.linearize(task, points(task), name());
}

at::Tensor GradientSumExplainer::differentiable(const ExplainTask& task) const {
  check_task(task);
  return sum_.differentiable(task, *points(task));
}

}  // namespace holdfast::explain
