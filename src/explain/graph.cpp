#include "graph.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/derivatives.h"

namespace holdfast::explain {
namespace {

class HeldGraph final : public Linearization {
 public:
  HeldGraph(at::Tensor inputs, at::Tensor maps, at::Tensor log_scale, at::Tensor logits)
      : inputs_(std::move(inputs)), maps_(std::move(maps)) {
    explanation_ = {maps_.detach(), log_scale.detach(), logits.detach()};
  }

  at::Tensor pullback(const at::Tensor& cotangent) override {
    return input_gradient(maps_, inputs_, cotangent, /*create_graph=*/false, /*keep_graph=*/true);
  }

 private:
  at::Tensor inputs_, maps_;
};

}  // namespace

at::Tensor task_logits(const ExplainTask& task, const at::Tensor& inputs, bool create_graph) {
  const TwiceDifferentiable twice(create_graph);
  return task.rule.softplus_beta.empty() ? task.model.logits(inputs) : task.model.logits(inputs, task.rule);
}

at::Tensor input_gradient(const at::Tensor& outputs, const at::Tensor& inputs, const at::Tensor& cotangent, bool create_graph,
                          bool keep_graph) {
  if (!outputs.requires_grad()) return at::zeros_like(inputs);
  const at::Tensor gradient = torch::autograd::grad({outputs}, {inputs}, {cotangent}, create_graph || keep_graph, create_graph,
                                                    /*allow_unused=*/true)[0];
  return gradient.defined() ? gradient : at::zeros_like(inputs);
}

std::unique_ptr<Linearization> hold_graph(at::Tensor inputs, at::Tensor maps, at::Tensor log_scale, at::Tensor logits) {
  return std::make_unique<HeldGraph>(std::move(inputs), std::move(maps), std::move(log_scale), std::move(logits));
}

}  // namespace holdfast::explain
