// ssr: lowers the largest eigenvalue of the cross-entropy's Hessian by the input.
//     ce + weight * lambda_max(d2 ce / dx2)
// Wang et al., "Smoothed Geometry for Robust Attribution", NeurIPS 2020 ("smooth surface regularization"). For piecewise-linear
// networks H = J^T (diag p - p p^T) J, whose largest eigenvalue is that of a matrix of the classes' size (logit_slopes.h): a step
// with two classes costs F + B + P. Other networks have curvature of their own: Lanczos' method finds the direction with
// `products` double backwards, and one more along it gives the eigenvalue with its derivative, u^T (dH) u.

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/lanczos.h"
#include "holdfast/train/objective.h"
#include "input_gradient.h"
#include "logit_slopes.h"

namespace holdfast::train::ssr {

const MethodInfo kInfo{
    .name = "ssr",
    .summary = "cross-entropy with a penalty on the largest eigenvalue of its Hessian",
    .citation = "Wang et al., Smoothed Geometry for Robust Attribution, NeurIPS 2020",
    .options = {{"curvature", 0.0003, at_least(0), "weight of the eigenvalue"},
                {"products", 6, at_least(1), "Hessian products that look for its direction where there is no closed form"}},
    .needs = {"gradients of gradients"}};

class Ssr final : public Objective {
 public:
  explicit Ssr(const Options& options)
      : Objective(options.canonical(), {"curvature"}),
        curvature_(options.real("curvature")),
        products_(options.integer("products")) {}

  std::vector<Term> terms(double) const override { return {{"ce"}, {"curvature", curvature_}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    if (is_piecewise_linear(trainee)) {
      const LogitSlopes slopes = logit_slopes(trainee, batch.inputs);
      return {ce_term(trainee, batch, slopes.logits), largest_ce_eigenvalue(slopes)};
    }
    const ExplainedPoint point = InputGradient(ExplainedQuantity::kCrossEntropy).at(trainee, batch.inputs, batch.labels);
    return {ce_term(trainee, batch, point.logits), along_lanczos(point, batch)};
  }

 private:
  at::Tensor along_lanczos(const ExplainedPoint& point, const TrainBatch& batch) const {
    const auto times = [&](const at::Tensor& vectors) {
      return hessian_times(point, vectors.view_as(point.inputs), /*create_graph=*/false).flatten(1);
    };
    const at::Tensor start =
        random_normal({point.inputs[0].numel()}, batch.sample_ids, batch.seed, "ssr.start", point.inputs.device());
    const double noise = point.inputs.scalar_type() == at::kDouble ? 1e-14 : 1e-6;
    const Extremes found = lanczos(times, start.to(point.inputs.options().requires_grad(false)),
                                   {.steps = products_, .tolerance = 0, .noise = noise});
    const at::Tensor direction = found.direction.view_as(point.inputs);
    return (hessian_times(point, direction, /*create_graph=*/true) * direction).flatten(1).sum(1);
  }

  double curvature_;
  std::int64_t products_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<Ssr>(kInfo);
}

}  // namespace holdfast::train::ssr
