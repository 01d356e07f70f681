// no_swap_radius: a distance within which no point's gradient of the class's probability ranks the features of the top k below
// others. The largest r with
//     r max over B(x, r) of ||s_i H_i - s_j H_j||_2 < |I_i| - |I_j|   for all i <= k < j
// and the same for the case that a sign changes (pair_bounds.h), found by bisection; max is bounded from above (ball_bounds.h),
// so a larger radius may hold, a smaller one always does. Derived from proposition 3.4 of Chen et al., NeurIPS 2024, whose own
// bound takes H at x alone: that radius is `first_order`, and is not a certificate.
//
// It holds for maps in the model's own precision: a gap is as much smaller as rounding may make it (bounds/rounding.h).
//
// For smooth feed-forward networks; the gradient of a ReLU network jumps at its kinks.

#include <limits>

#include "bounds/ball_bounds.h"
#include "bounds/pair_bounds.h"
#include "bounds/rounding.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "points.h"
#include "smooth_measure.h"

namespace holdfast::measure::no_swap_radius {

MethodInfo no_swap_radius_info() {
  MethodInfo info{.name = "no_swap_radius",
                  .summary = "l2 radius within which the top k of the probability's gradient provably stay above the others",
                  .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024 (proposition 3.4, made sound)",
                  .options = PairChoice::options(),
                  .needs = {"a smooth feed-forward network"}};
  info.options.push_back({"limit", 10.0, above(0), "radius at which the search stops"});
  info.options.push_back(smooth_project_option());
  return info;
}

constexpr int kBisections = 40;

class NoSwapRadius final : public Measure {
 public:
  explicit NoSwapRadius(const Options& options)
      : Measure(options.canonical()),
        pairs_(PairChoice::from(options, name())),
        limit_(options.real("limit")),
        project_(options.word("project") == "auto") {}

  bool higher_is_better() const override { return true; }
  bool uses_explainer() const override { return false; }

  void check(const MeasureTask& task) const override {
    pairs_.check(task.samples.layout(), name());
    check_one_element_a_feature(task.samples.layout(), name());
    check_smooth(task, name());
  }

  Measurement run(const MeasureTask& task) const override {
    check(task);
    Measurement result{.parts = {{"first_order", {}}}};
    if (task.samples.inputs.size(0) == 0) return result;
    const SmoothChain chain(task.model, task.samples.inputs.slice(0, 0, 1));
    for (const PointBlock& block : point_blocks(task.samples.inputs.size(0), 1, samples_that_fit(chain, task, pairs_))) {
      const MeasureTask part = part_of(task, block.sample, block.sample + block.samples);
      const BallBounds here = chain.bounds(part.samples.inputs, part.samples.targets, at::zeros({block.samples}, at::kDouble));
      const at::Tensor gradient =
          project_ ? projected_gradient(here.gradient.center, *part.samples.schema) : here.gradient.center;
      const at::Tensor first_order = largest_radius(terms(part, gradient, here.hessian)).clamp_max(limit_);
      append(result.values, certified(part, chain, gradient, first_order));
      append(result.parts[0].second, first_order);
    }
    return result;
  }

 private:
  PairTerms terms(const MeasureTask& task, const at::Tensor& gradient, const Enclosure& hessian) const {
    return pair_terms(ranked_pairs(pairs_, gradient), gradient,
                      project_ ? projected_hessian(hessian, *task.samples.schema) : hessian);
  }

  // Gives the radius at which the first pair could meet if the terms held everywhere: [B].
  static at::Tensor largest_radius(const PairTerms& over) {
    const at::Tensor radius = at::minimum(over.gap / over.together, over.sum / over.apart);
    return at::where(over.gap > 0, radius, at::zeros_like(radius)).flatten(1).amin(1);
  }

  // Wider balls have larger bounds, so what holds for one holds for all smaller ones, and bisection finds the largest.
  at::Tensor certified(const MeasureTask& task, const SmoothChain& chain, const at::Tensor& gradient, at::Tensor high) const {
    at::Tensor low = at::zeros_like(high);
    const double unit = unit_roundoff(task.model.dtype());
    for (int i = 0; i < kBisections; ++i) {
      throw_if_interrupted();
      const at::Tensor middle = (low + high) / 2;
      const BallBounds ball =
          chain.bounds(task.samples.inputs, task.samples.targets, middle, SmoothChain::Output::kProbability, unit);
      PairTerms over = terms(task, gradient, ball.hessian);
      const at::Tensor slack = gap_errors(ball.rounding, ball.gradient.center.abs() + ball.gradient.radius,
                                          ranked_pairs(pairs_, gradient), project_ ? task.samples.schema.get() : nullptr, unit);
      over.gap = over.gap - slack;
      over.sum = over.sum - slack;
      const at::Tensor holds = middle < largest_radius(over);
      low = at::where(holds, middle, low);
      high = at::where(holds, high, middle);
    }
    return low;
  }

  PairChoice pairs_;
  double limit_;
  bool project_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<NoSwapRadius>(no_swap_radius_info());
}

}  // namespace holdfast::measure::no_swap_radius
