#include "hessian.h"

#include "holdfast/core/torch.h"

namespace holdfast::measure {
namespace {

// The signed gradient of saliency, whose scale is kept apart: it does not underflow where the probability is saturated.
std::unique_ptr<Explainer> gradient_of(const std::string& quantity) {
  return explainers().make("saliency(signed=true,project=none,target=" + quantity + ")");
}

at::Tensor in_double(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kDouble);
}

at::Tensor scale_of(const Explanation& explanation) {
  return in_double(explanation.log_scale).exp().unsqueeze(1);
}

}  // namespace

Hessian::Hessian(const MeasureTask& task, const std::string& quantity)
    : held_(gradient_of(quantity)->linearize(task.explain_task())),
      scale_(scale_of(held_->at())),
      gradient_(in_double(held_->at().maps).flatten(1) * scale_) {}

at::Tensor Hessian::times(const at::Tensor& vectors) const {
  const at::Tensor& maps = held_->at().maps;
  return in_double(held_->pullback(vectors.to(maps.options()).view_as(maps))).flatten(1) * scale_;
}

at::Tensor Hessian::whole() const {
  const std::int64_t samples = gradient_.size(0), n = gradient_.size(1);
  at::Tensor matrix = at::empty({samples, n, n}, at::kDouble);
  for (std::int64_t i = 0; i < n; ++i) {
    at::Tensor unit = at::zeros({samples, n}, at::kDouble);
    unit.select(1, i).fill_(1);
    matrix.select(1, i).copy_(times(unit));
  }
  return matrix;
}

at::Tensor quantity_gradient(const MeasureTask& task, const std::string& quantity, const at::Tensor& inputs) {
  ExplainTask there = task.explain_task();
  there.samples.inputs = inputs;
  const Explanation explanation = gradient_of(quantity)->attribute(there);
  return in_double(explanation.maps).flatten(1) * scale_of(explanation);
}

}  // namespace holdfast::measure
