// thickness_bounds: what the relaxed thickness of the probability's gradient cannot fall below, from its gap and curvature.
//     by=printed   h - (eps/2) ||H_i - H_j||_2 <= Theta <= h + eps (L_i + L_j),   L_i = max over the ball of ||H_i||_2
//     by=sound     int_0^1 min_t ... dt: h - (eps/2) max over the ball of ||H_i - H_j||_2 where no sign changes (pair_bounds.h)
// for magnitudes, H_i = s_i dI_i/dx; the value is the lower bound, `upper` the other, `gap` is h. For all pairs across rank k:
// their means. Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024, proposition 3.4.
//
// The printed lower bound takes H at the sample alone: it is first order, and thickness does fall below it on nets that
// curve more elsewhere. The sound one takes bounds over the whole ball (ball_bounds.h) and holds for every distribution of
// endpoints in it, for smooth feed-forward networks; kinks make the gradient jump, and no such bound exists. The printed upper
// bound needs L over the ball as well and is left undefined where the network has kinks.

#include <cmath>

#include "bounds/ball_bounds.h"
#include "bounds/hessian.h"
#include "bounds/pair_bounds.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "nan.h"
#include "points.h"
#include "smooth_measure.h"

namespace holdfast::measure::thickness_bounds {

MethodInfo thickness_bounds_info() {
  MethodInfo info{.name = "thickness_bounds",
                  .summary = "lower bound of the relaxed thickness of the probability's gradient; its upper bound beside it",
                  .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
                  .options = PairChoice::options(),
                  .needs = {"a smooth feed-forward network for by=sound; gradients of gradients for by=printed"}};
  info.options.push_back({"by", "sound", one_of({"sound", "printed"}), "bounds that hold, or the paper's first-order form"});
  info.options.push_back({"epsilon", 0.0, at_least(0), "radius of the l2 ball; 0: the task's (--epsilon)"});
  info.options.push_back(smooth_project_option());
  return info;
}

// int_0^1 min(a - b t, c - d t) dt with a <= c.
at::Tensor integral_of_lower(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, const at::Tensor& d) {
  const at::Tensor crossing = at::where(d > b, (c - a) / (d - b), at::ones_like(d)).clamp(0, 1);
  const at::Tensor square = crossing.square();
  return a * crossing - b * square / 2 + c * (1 - crossing) - d * (1 - square) / 2;
}

at::Tensor mean_over_pairs(const at::Tensor& pairs) {
  return pairs.flatten(1).mean(1);
}

class ThicknessBounds final : public Measure {
 public:
  explicit ThicknessBounds(const Options& options)
      : Measure(options.canonical()),
        pairs_(PairChoice::from(options, name())),
        printed_(options.word("by") == "printed"),
        epsilon_(options.real("epsilon")),
        project_(options.word("project") == "auto") {}

  bool higher_is_better() const override { return true; }
  bool uses_explainer() const override { return false; }

  void check(const MeasureTask& task) const override {
    pairs_.check(task.samples.layout(), name());
    check_one_element_a_feature(task.samples.layout(), name());
    if (radius(task) == 0) usage_error("{}: no radius is given (--epsilon NUMBER, or the option epsilon=0.5, say)", name());
    if (!printed_) return check_smooth(task, name());
    if (!task.model.capabilities().double_backward) usage_error("{}: the model cannot be differentiated twice", name());
  }

  Measurement run(const MeasureTask& task) const override {
    check(task);
    std::optional<SmoothChain> chain;
    if (task.samples.inputs.size(0) > 0 && !SmoothChain::what_prevents(task.model))
      chain.emplace(task.model, task.samples.inputs.slice(0, 0, 1));
    const std::int64_t rows = chain ? samples_that_fit(*chain, task, pairs_) : rows_that_fit(task, Pass::kPullback);
    Measurement result{.parts = {{"upper", {}}, {"gap", {}}}};
    for (const PointBlock& block : point_blocks(task.samples.inputs.size(0), 1, rows)) {
      throw_if_interrupted();
      const MeasureTask part = part_of(task, block.sample, block.sample + block.samples);
      const Bounds found = printed_ ? printed(part, chain) : sound(part, *chain);
      append(result.values, mean_over_pairs(found.lower));
      append(result.parts[0].second, mean_over_pairs(found.upper));
      append(result.parts[1].second, mean_over_pairs(found.gap));
    }
    return result;
  }

 private:
  struct Bounds {
    at::Tensor lower, upper, gap;  // [B, above, below]
  };

  double radius(const MeasureTask& task) const { return epsilon_ > 0 ? epsilon_ : task.epsilon; }

  PairTerms terms(const MeasureTask& task, const at::Tensor& gradient, const Enclosure& hessian) const {
    const at::Tensor ranked = project_ ? projected_gradient(gradient, *task.samples.schema) : gradient;
    return pair_terms(ranked_pairs(pairs_, ranked), ranked,
                      project_ ? projected_hessian(hessian, *task.samples.schema) : hessian);
  }

  // Over the ball, with the gradient at the sample itself.
  PairTerms terms_over_ball(const MeasureTask& task, const SmoothChain& chain) const {
    const at::Tensor reach = at::full({task.samples.inputs.size(0)}, radius(task), at::kDouble);
    const BallBounds here = chain.bounds(task.samples.inputs, task.samples.targets, at::zeros_like(reach));
    return terms(task, here.gradient.center, chain.bounds(task.samples.inputs, task.samples.targets, reach).hessian);
  }

  Bounds sound(const MeasureTask& task, const SmoothChain& chain) const {
    const PairTerms over = terms_over_ball(task, chain);
    const double reach = radius(task);
    // The upper bound is the lower one of the opposite gap, whose other sign has -(|I_i| + |I_j|).
    return {.lower = integral_of_lower(over.gap, reach * over.together, over.sum, reach * over.apart),
            .upper = -integral_of_lower(-over.gap, reach * over.together, over.sum, reach * over.apart),
            .gap = over.gap};
  }

  Bounds printed(const MeasureTask& task, const std::optional<SmoothChain>& chain) const {
    const Hessian hessian(task, "probability");
    const at::Tensor matrix = hessian.whole();
    const PairTerms here = terms(task, hessian.gradient(), {matrix, at::zeros_like(matrix)});
    const double reach = radius(task);
    Bounds result{.lower = here.gap - reach / 2 * here.together, .upper = at::full_like(here.gap, kNaN), .gap = here.gap};
    if (chain) result.upper = here.gap + reach * terms_over_ball(task, *chain).rows;
    return result;
  }

  PairChoice pairs_;
  bool printed_;
  double epsilon_;
  bool project_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<ThicknessBounds>(thickness_bounds_info());
}

}  // namespace holdfast::measure::thickness_bounds
