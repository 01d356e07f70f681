// est_h: flattens the gradient, by an estimate of the Hessian's norm along the gradient's signs.
//     ce + weight * ||g(x + kappa v) - g(x)|| / kappa        g = d p_c / dx, v = sign(g) / ||sign(g)||
// The baseline "Est-H" of Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024; the estimate is
// Moosavi-Dezfooli et al.'s (sign_curvature.h, with what differs from the authors' code). A step costs 2F + 2B + P.

#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "input_gradient.h"
#include "sign_curvature.h"

namespace holdfast::train::est_h {

MethodInfo est_h_info() {
  MethodInfo info{.name = "est_h",
                  .summary = "cross-entropy with a penalty on the estimated norm of the Hessian",
                  .citation = "Moosavi-Dezfooli et al., Robustness via Curvature Regularization, and Vice Versa, CVPR 2019",
                  .options = {{"curvature", 0.001, at_least(0), "weight of the curvature"}},
                  .needs = {"gradients of gradients"}};
  for (OptionSpec& option : SignCurvature::options()) info.options.push_back(std::move(option));
  info.options.push_back(InputGradient::target_option());
  return info;
}

class EstH final : public Objective {
 public:
  explicit EstH(const Options& options)
      : Objective(options.canonical(), {"curvature"}),
        curvature_(options.real("curvature")),
        sign_curvature_(options),
        gradient_(options) {}

  std::vector<Term> terms(double) const override { return {{"ce"}, {"curvature", curvature_}, {"norm", 0}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const ExplainedPoint point = gradient_.at(trainee, batch);
    // Before the pass of the cross-entropy, which moves running statistics: both gradients of the difference must be of one
    // function.
    const at::Tensor curved = sign_curvature_.value(gradient_, trainee, point);
    return {ce_term(trainee, batch, point.logits), curved, norms(point.gradient.detach())};
  }

 private:
  double curvature_;
  SignCurvature sign_curvature_;
  InputGradient gradient_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<EstH>(est_h_info());
}

}  // namespace holdfast::train::est_h
