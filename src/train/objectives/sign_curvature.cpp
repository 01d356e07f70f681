#include "sign_curvature.h"

#include "holdfast/core/torch.h"

namespace holdfast::train {

std::vector<OptionSpec> SignCurvature::options() {
  return {{"form", "difference", one_of({"difference", "hvp"}),
           "of the curvature: finite difference, or exact Hessian-vector product"},
          {"kappa", 1e-2, above(0), "l2 length of the step of the finite difference"}};
}

SignCurvature::SignCurvature(const Options& options)
    : difference_(options.word("form") == "difference"), kappa_(options.real("kappa")) {}

at::Tensor SignCurvature::value(const InputGradient& gradient, Trainee& trainee, const ExplainedPoint& point) const {
  const at::Tensor signs = point.gradient.detach().sign();
  const at::Tensor direction = signs / per_sample(norms(signs).clamp_min(1), signs);  // 0 where the gradient is
  if (!difference_) return norms(hessian_times(point, direction, /*create_graph=*/true));
  const ExplainedPoint there = gradient.at(trainee, point.inputs.detach() + kappa_ * direction, point.classes);
  return norms(there.gradient - point.gradient) / kappa_;
}

}  // namespace holdfast::train
