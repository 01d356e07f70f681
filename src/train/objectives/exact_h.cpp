// exact_h: flattens the gradient, by the exact norm of the Hessian.
//     ce + weight * ||H||_F,     H = d2 p_c / dx2, c the predicted class
// The baseline "Exact-H" of Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024. The paper does not say which
// norm: this is Frobenius'. For piecewise-linear networks it has a closed form of one input gradient a class but one
// (logit_slopes.h); a step with two classes costs F + B + P. Other networks need a product with H for every input element: all
// of them in one pass of as many copies of each sample, which is for tables, not for images.

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/measure/what_bends.h"
#include "holdfast/train/objective.h"
#include "input_gradient.h"
#include "logit_slopes.h"

namespace holdfast::train::exact_h {

// Elements of a sample up to which as many copies of it are affordable.
constexpr std::int64_t kMostElements = 512;

const MethodInfo kInfo{.name = "exact_h",
                       .summary = "cross-entropy with a penalty on the Frobenius norm of the Hessian",
                       .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
                       .options = {{"curvature", 0.001, at_least(0), "weight of the curvature"}},
                       .needs = {"gradients of gradients"}};

class ExactH final : public Objective {
 public:
  explicit ExactH(const Options& options)
      : Objective(options.canonical(), {"curvature"}), curvature_(options.real("curvature")) {}

  void check(const Network& network, const Schema& schema) const override {
    const auto bend = what_bends(network);
    if (bend && schema.layout.inputs() > kMostElements) {
      usage_error("{}: {} needs one Hessian product for each of a sample's {} elements, at most {} are affordable; use est_h",
                  name(), *bend, schema.layout.inputs(), kMostElements);
    }
  }

  std::vector<Term> terms(double) const override { return {{"ce"}, {"curvature", curvature_}}; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    if (is_piecewise_linear(trainee)) {
      const LogitSlopes slopes = logit_slopes(trainee, batch.inputs);
      return {ce_term(trainee, batch, slopes.logits), probability_hessian_norm(slopes, predicted_class(slopes.logits.detach()))};
    }
    const at::Tensor logits = trainee.logits(batch.inputs);
    return {ce_term(trainee, batch, logits), norm_by_products(trainee, batch, predicted_class(logits.detach()))};
  }

 private:
  static at::Tensor norm_by_products(Trainee& trainee, const TrainBatch& batch, const at::Tensor& classes) {
    const InputGradient gradient(ExplainedQuantity::kProbability);
    const std::int64_t elements = batch.inputs[0].numel();
    std::vector<std::int64_t> shape = batch.inputs.sizes().vec();
    shape.insert(shape.begin() + 1, elements);
    const at::Tensor units = at::eye(elements, batch.inputs.options()).expand({shape[0], elements, elements}).reshape(shape);
    const ExplainedPoint here{.inputs = batch.inputs, .logits = {}, .classes = classes, .gradient = {}};
    return norms(gradient.hessian_products(trainee, here, units));
  }

  double curvature_;
};

void add_to(Registry<Objective>& registry) {
  registry.add<ExactH>(kInfo);
}

}  // namespace holdfast::train::exact_h
