// curvature: how fast the gradient turns around the sample; a norm of the Hessian of the explained quantity by the input.
//     frobenius   sqrt(sum_ij H_ij^2)
//     spectral    largest |eigenvalue|
//     largest     largest eigenvalue; of the cross-entropy, what SSR penalises
//     estimate    || (g(x + kappa v) - g(x)) / kappa ||_2, g the gradient, v = sign(g(x)) / || sign(g(x)) ||_2: what Est-H
//     penalises
// Exact norms are computed by=products, Hessian-vector products by double backward - one for each input element for the
// Frobenius norm, Lanczos iterations for eigenvalues - or by=closed for piecewise-linear networks (logit_hessian.h). `residual`
// bounds how far an eigenvalue lies from the value that Lanczos gave.
//
// Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024 (Exact-H, Est-H); Wang et al., "Smoothed Geometry for
// Robust Attribution", NeurIPS 2020 (SSR). The authors' kappa moves a pixel by 3.3e-7, which float32 rounds to noise; ours is a
// length of 1e-2.
//
// A ReLU network has no curvature where it has kinks: its Hessian is that of the linear region around the sample.

#include <cmath>
#include <limits>

#include "bounds/hessian.h"
#include "bounds/logit_hessian.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/lanczos.h"
#include "holdfast/measure/measure.h"
#include "points.h"

namespace holdfast::measure::curvature {

const MethodInfo kInfo{
    .name = "curvature",
    .summary = "norm of the Hessian of the explained quantity by the input",
    .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
    .options = {{"norm", "frobenius", one_of({"frobenius", "spectral", "largest", "estimate"}),
                 "of the Hessian: Frobenius, largest |eigenvalue|, largest eigenvalue, or Est-H's finite difference"},
                {"of", "probability", one_of({"probability", "ce", "logit"}), "what is differentiated, of the explained class"},
                {"by", "auto", one_of({"auto", "products", "closed"}),
                 "Hessian-vector products, or the closed form of piecewise-linear networks; auto: closed where it is exact"},
                {"kappa", 0.01, above(0), "length of the estimate's step, in the units of the inputs"},
                {"steps", 64, at_least(1), "products of Lanczos at most"},
                {"tolerance", 1e-6, above(0), "of Lanczos: residual as a share of the eigenvalue"}},
    .needs = {"gradients of gradients, unless the network is piecewise linear or norm=estimate"}};

// More classes than this, and their gradients cost more than Lanczos.
constexpr std::int64_t kClosedClasses = 64;

class Curvature final : public Measure {
 public:
  explicit Curvature(const Options& options)
      : Measure(options.canonical()),
        norm_(options.word("norm")),
        of_(options.word("of")),
        by_(options.word("by")),
        kappa_(options.real("kappa")),
        steps_(options.integer("steps")),
        tolerance_(options.real("tolerance")) {}

  bool higher_is_better() const override { return false; }
  bool uses_explainer() const override { return false; }

  void check(const MeasureTask& task) const override {
    const Capabilities can = task.model.capabilities();
    if (!can.gradients) usage_error("{}: the model has no gradients by its inputs", name());
    if (norm_ == "estimate") return;
    const std::optional<std::string> bend = what_bends(task.model);
    if (by_ == "closed" && bend) {
      usage_error("{}: the closed form holds for piecewise-linear networks, but {} has {}; write by=products", name(),
                  task.model.name().empty() ? "the model" : task.model.name(), *bend);
    }
    if ((by_ == "products" || bend) && !can.double_backward) usage_error("{}: the model cannot be differentiated twice", name());
  }

  Measurement run(const MeasureTask& task) const override {
    check(task);
    const bool closed = norm_ != "estimate" && closed_form(task);
    const bool iterates = !closed && (norm_ == "spectral" || norm_ == "largest");
    Measurement result;
    if (iterates) result.parts.push_back({"residual", {}});
    for (const PointBlock& block : point_blocks(task.samples.inputs.size(0), 1, rows_that_fit(task, Pass::kPullback))) {
      throw_if_interrupted();
      const MeasureTask part = part_of(task, block.sample, block.sample + block.samples);
      if (norm_ == "estimate") {
        append(result.values, estimate(part));
      } else if (closed) {
        append(result.values, norm_of(closed_eigenvalues(part, of_), task.samples.inputs[0].numel()));
      } else if (norm_ == "frobenius") {
        append(result.values, frobenius(Hessian(part, of_)));
      } else {
        const Extremes found = extremes(Hessian(part, of_), part);
        append(result.values, norm_ == "spectral" ? found.magnitude : found.largest);
        append(result.parts[0].second, found.residual);
      }
    }
    return result;
  }

 private:
  bool closed_form(const MeasureTask& task) const {
    if (by_ != "auto") return by_ == "closed";
    if (what_bends(task.model)) return false;
    const at::NoGradGuard no_graph;
    return task.samples.inputs.size(0) > 0 && task.model.logits(task.samples.inputs.slice(0, 0, 1)).size(1) <= kClosedClasses;
  }

  // Computes the measure from the eigenvalues of a Hessian of `elements` rows, all but zeros.
  at::Tensor norm_of(const at::Tensor& eigenvalues, std::int64_t elements) const {
    if (norm_ == "frobenius") return eigenvalues.norm(2, 1);
    if (norm_ == "spectral") return eigenvalues.abs().amax(1);
    const at::Tensor largest = eigenvalues.amax(1);
    return elements > eigenvalues.size(1) ? largest.clamp_min(0) : largest;
  }

  static at::Tensor frobenius(const Hessian& hessian) {
    const std::int64_t samples = hessian.gradient().size(0), n = hessian.gradient().size(1);
    at::Tensor squares = at::zeros({samples}, at::kDouble);
    for (std::int64_t i = 0; i < n; ++i) {
      throw_if_interrupted();
      at::Tensor unit = at::zeros({samples, n}, at::kDouble);
      unit.select(1, i).fill_(1);
      squares += hessian.times(unit).square().sum(1);
    }
    return squares.sqrt();
  }

  Extremes extremes(const Hessian& hessian, const MeasureTask& task) const {
    const bool single = task.model.dtype() != at::kDouble;
    const at::Tensor start =
        random_normal({hessian.gradient().size(1)}, task.samples.ids, task.seed, "curvature.start").to(at::kDouble);
    return lanczos([&](const at::Tensor& vectors) { return hessian.times(vectors); }, start,
                   {.steps = steps_, .tolerance = tolerance_, .noise = single ? 1e-6 : 1e-14});
  }

  at::Tensor estimate(const MeasureTask& task) const {
    const at::Tensor here = quantity_gradient(task, of_, task.samples.inputs);
    const at::Tensor sign = here.sign(), step = kappa_ * sign / sign.norm(2, 1, /*keepdim=*/true);  // NaN without a gradient
    const at::Tensor there =
        quantity_gradient(task, of_, task.samples.inputs + step.to(task.samples.inputs.options()).view_as(task.samples.inputs));
    return (there - here).norm(2, 1) / kappa_;
  }

  std::string norm_, of_, by_;
  double kappa_;
  std::int64_t steps_;
  double tolerance_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<Curvature>(kInfo);
}

}  // namespace holdfast::measure::curvature
