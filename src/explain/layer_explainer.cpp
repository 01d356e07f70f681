#include "layer_explainer.h"

#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"

namespace holdfast::explain {
namespace {

// A walk holds the values of all layers with their graph, its cotangents, and those of a second run where it compares two: as
// much as a pullback of a gradient.
std::int64_t rows_of_a_walk(const ExplainTask& task) {
  const std::int64_t samples = task.samples.inputs.size(0);
  return samples < 2 ? 1 : even_part(samples, BatchRows(task).most(Pass::kPullback));
}

ExplainTask part_of(const ExplainTask& task, std::int64_t begin, std::int64_t rows) {
  ExplainTask part = task;
  part.samples = task.samples.slice(begin, begin + rows);
  return part;
}

Explanation joined(const std::vector<Explanation>& parts) {
  if (parts.size() == 1) return parts[0];
  Explanation whole;
  for (at::Tensor Explanation::*field :
       {&Explanation::maps, &Explanation::log_scale, &Explanation::logits, &Explanation::delta, &Explanation::gauge_share}) {
    std::vector<at::Tensor> tensors;
    for (const Explanation& part : parts) {
      if ((part.*field).defined()) tensors.push_back(part.*field);
    }
    if (!tensors.empty()) whole.*field = at::cat(tensors);
  }
  return whole;
}

// Of more samples than fit the task's memory: each part's graph is made again when its turn comes, and dropped.
class CutLinearization final : public Linearization {
 public:
  CutLinearization(const Explainer& explainer, const ExplainTask& task, std::int64_t rows)
      : explainer_(explainer), task_(task), rows_(rows) {
    explanation_ = explainer_.attribute(task_);
  }

  at::Tensor pullback(const at::Tensor& cotangent) override {
    std::vector<at::Tensor> gradients;
    for (std::int64_t begin = 0; begin < cotangent.size(0); begin += rows_) {
      gradients.push_back(explainer_.linearize(part_of(task_, begin, rows_))->pullback(cotangent.slice(0, begin, begin + rows_)));
    }
    return at::cat(gradients);
  }

 private:
  const Explainer& explainer_;
  ExplainTask task_;
  std::int64_t rows_;
};

}  // namespace

void LayerExplainer::check(const Model& model) const {
  if (!model.capabilities().gradients)
    usage_error("{}: the model has no gradients by its inputs; occlusion and shapley need none", name());
  const std::string called = model.name().empty() ? "the model" : model.name();
  if (model.network() == nullptr) usage_error("{} needs the layers of a network; {} is opaque", name(), called);
  check_network(*model.network(), called);
}

Explanation LayerExplainer::attribute(const ExplainTask& task) const {
  check(task.model);
  const std::int64_t rows = rows_of_a_walk(task);
  std::vector<Explanation> parts;
  for (std::int64_t begin = 0; begin < task.samples.inputs.size(0); begin += rows)
    parts.push_back(attribute_at_once(part_of(task, begin, rows)));
  return parts.empty() ? attribute_at_once(task) : joined(parts);
}

Explanation LayerExplainer::attribute_at_once(const ExplainTask& task) const {
  const at::NoGradGuard no_graph;
  Traced traced = trace(task, *task.model.network(), task.samples.inputs.detach().requires_grad_());
  traced.maps = traced.maps.detach();
  traced.logits = traced.logits.detach();
  return traced;
}

std::unique_ptr<Linearization> LayerExplainer::linearize(const ExplainTask& task) const {
  check(task.model);
  const std::int64_t rows = rows_of_a_walk(task);
  if (rows < task.samples.inputs.size(0)) return std::make_unique<CutLinearization>(*this, task, rows);
  const at::AutoGradMode with_graph(true);
  at::Tensor inputs = task.samples.inputs.detach().requires_grad_();
  Traced traced = trace(task, *task.model.network(), inputs);
  return hold_graph(std::move(inputs), std::move(traced.maps), std::move(traced.log_scale), std::move(traced.logits));
}

// The scale is multiplied back, as a constant, so that losses see true magnitudes.
at::Tensor LayerExplainer::differentiable(const ExplainTask& task) const {
  HOLDFAST_CHECK(task.samples.inputs.requires_grad());
  check(task.model);
  const at::AutoGradMode with_graph(true);
  const Traced traced = trace(task, *task.model.network(), task.samples.inputs);
  std::vector<std::int64_t> one_a_sample(static_cast<std::size_t>(traced.maps.dim()), 1);
  one_a_sample[0] = traced.maps.size(0);
  return traced.maps * traced.log_scale.exp().view(one_a_sample);
}

}  // namespace holdfast::explain
