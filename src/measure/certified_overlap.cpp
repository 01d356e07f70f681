// certified_overlap: certified P@k, the share of a map's top k that is proven to stay among the top k at every point of the l2
// ball of `radius`. No attack can bring top_k(k) of the saliency below it; whether the class is kept and what inputs are valid
// does not count, so the truth may be higher. Ours; no paper.
//
//     1 - d / k      d: the most features that can have left at once while the pairs that are proven keep their order
//     (metric/swaps.h)
//
// A pair of a top feature i and another one j is proven where a lower bound of |I_i| - |I_j| over the ball is above 0:
//     intervals     of the gradient of the margin of two classes, to which the probability's is parallel (margin_bounds.h):
//     chains of
//                   linear layers with relu, leaky_relu or softplus
//     mean values   h - radius max over the ball of ||s_i H_i - s_j H_j||_2 (pair_bounds.h), in small balls the tighter: smooth
//                   chains, of the margin, or with more classes of the probability
// Where a network has both, either proves. Ties prove nothing: with a zero gradient all over the ball, no order is proven.
//
// In double precision with a small slack, not with outward rounding; the ball is as much wider as points of an attack may be off.

#include <algorithm>
#include <optional>

#include "bounds/ball_bounds.h"
#include "bounds/pair_bounds.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/measure/margin_bounds.h"
#include "holdfast/measure/measure.h"
#include "holdfast/metric/swaps.h"
#include "points.h"
#include "smooth_measure.h"

namespace holdfast::measure::certified_overlap {

constexpr double kRoundingSlack = 1e-10;  // of the largest gradient in the ball: above the rounding of the sums

MethodInfo certified_overlap_info() {
  return {.name = "certified_overlap",
          .summary = "certified P@k: share of the gradient's top k that provably stays on top in an l2 ball",
          .options = {{"k", 8, at_least(1), "size of the top"},
                      {"radius", 0.1, at_least(0), "of the l2 ball around the sample"},
                      smooth_project_option()},
          .needs = {"two classes and linear layers with relu, leaky_relu or softplus; or a smooth feed-forward network"},
          .notes = "A lower bound of top_k(k) under any attack with saliency; 1 for a linear model at any radius."};
}

// The bounds that there are for a model.
class Certifier {
 public:
  Certifier(const MeasureTask& task, const PairChoice& pairs, bool project) : pairs_(pairs), project_(project) {
    const at::NoGradGuard no_graph;
    if (!MarginChain::what_prevents(*task.model.network())) margin_.emplace(task.model.network()->to(at::kDouble).to(at::kCPU));
    if (!SmoothChain::what_prevents(task.model)) smooth_.emplace(task.model, task.samples.inputs.slice(0, 0, 1));
  }

  // Lower bounds of |I_i| - |I_j| over the ball, [B, k, n - k].
  at::Tensor gaps(const MeasureTask& task, double radius) const {
    const at::NoGradGuard no_graph;
    if (!margin_) return mean_values(task, radius, std::nullopt);
    const auto [bounds, pairs] = intervals(task, radius);
    return smooth_ ? at::maximum(bounds, mean_values(task, radius, pairs)) : bounds;
  }

  // Samples whose bounds fit the task's memory.
  std::int64_t samples_at_once(const MeasureTask& task) const {
    const std::int64_t mean_values = smooth_ ? samples_that_fit(*smooth_, task, pairs_) : task.samples.inputs.size(0);
    if (!margin_) return mean_values;
    constexpr std::int64_t kCopies = 6;
    const std::int64_t n = task.samples.layout().features(), doubles = n * n * static_cast<std::int64_t>(sizeof(double));
    if (const std::int64_t all = 2 * margin_->units() * doubles; all > std::max(task.memory, kExplainMemory))
      usage_error("certified_overlap: bounds of all pairs of {} features take {} MiB; they are for fewer features", n, all >> 20);
    return std::min(mean_values, std::max<std::int64_t>(1, task.memory / (kCopies * doubles)));
  }

 private:
  struct Bounded {
    at::Tensor bounds;
    RankedPairs pairs;
  };

  at::Tensor projected(const at::Tensor& vectors, const Schema& schema) const {
    return project_ ? projected_gradient(vectors, schema) : vectors;
  }

  Bounded intervals(const MeasureTask& task, double radius) const {
    const at::Tensor x = task.samples.inputs.detach().to(at::kCPU, at::kDouble).flatten(1).unsqueeze(0);
    const MarginBounds ball = margin_->bounds(x, radius);
    const at::Tensor rows = projected(ball.rows[0], *task.samples.schema),
                     gradient = projected(ball.gradient[0], *task.samples.schema);
    const at::Tensor signs = at::where(gradient < 0, -1.0, 1.0);
    const at::Tensor all =
        pair_lower_bounds({.rows = rows.unsqueeze(0), .middle = ball.middle, .half = ball.half, .signs = signs.unsqueeze(0)})[0];
    const RankedPairs pairs = ranked_pairs(pairs_, gradient);
    const std::int64_t n = gradient.size(1), k = pairs.above.size(1);
    const at::Tensor above = all.gather(1, pairs.above.unsqueeze(2).expand({-1, -1, n}));
    const at::Tensor bounds = above.gather(2, pairs.below.unsqueeze(1).expand({-1, k, -1}));
    const at::Tensor largest = at::matmul(ball.middle[0].abs() + ball.half[0], rows.abs()).amax(1);  // |G_i| in the ball
    return {bounds - kRoundingSlack * largest.view({-1, 1, 1}), pairs};
  }

  // Without `pairs` those of its own gradient.
  at::Tensor mean_values(const MeasureTask& task, double radius, std::optional<RankedPairs> pairs) const {
    const auto output = smooth_->classes() == 2 ? SmoothChain::Output::kMargin : SmoothChain::Output::kProbability;
    const at::Tensor reach = at::full({task.samples.inputs.size(0)}, radius, at::kDouble);
    const BallBounds here = smooth_->bounds(task.samples.inputs, task.samples.targets, at::zeros_like(reach), output);
    const Enclosure hessian = smooth_->bounds(task.samples.inputs, task.samples.targets, reach, output).hessian;
    const at::Tensor gradient = projected(here.gradient.center, *task.samples.schema);
    if (!pairs) pairs = ranked_pairs(pairs_, gradient);
    const PairTerms over = pair_terms(*pairs, gradient, project_ ? projected_hessian(hessian, *task.samples.schema) : hessian);
    const at::Tensor slack = kRoundingSlack * gradient.abs().amax(1).view({-1, 1, 1});
    return at::minimum(over.gap - radius * over.together, over.sum - radius * over.apart) - slack;
  }

  PairChoice pairs_;
  bool project_;
  std::optional<MarginChain> margin_;
  std::optional<SmoothChain> smooth_;
};

class CertifiedOverlap final : public Measure {
 public:
  explicit CertifiedOverlap(const Options& options)
      : Measure(options.canonical()),
        pairs_{.k = options.integer("k")},
        radius_(options.real("radius")),
        project_(options.word("project") == "auto") {}

  bool higher_is_better() const override { return true; }
  bool uses_explainer() const override { return false; }
  Range range() const override { return {0, 1}; }

  void check(const MeasureTask& task) const override {
    pairs_.check(task.samples.layout(), name());
    check_one_element_a_feature(task.samples.layout(), name());
    const std::optional<std::string> bend = SmoothChain::what_prevents(task.model);
    if (!bend) return;
    const std::string model = task.model.name().empty() ? "the model" : task.model.name();
    if (task.model.network() == nullptr) usage_error("{}: there are no bounds for {}, which has {}", name(), model, *bend);
    const std::optional<std::string> link = MarginChain::what_prevents(*task.model.network());
    if (!link) return;
    usage_error(
        "{}: there are bounds for smooth chains, but {} has {}, and for linear layers with relu, leaky_relu or softplus "
        "and two classes, but it has {}",
        name(), model, *bend, *link);
  }

  Measurement run(const MeasureTask& task) const override {
    check(task);
    Measurement result;
    if (task.samples.inputs.size(0) == 0) return result;
    const Certifier certifier(task, pairs_, project_);
    for (const PointBlock& block : point_blocks(task.samples.inputs.size(0), 1, certifier.samples_at_once(task))) {
      throw_if_interrupted();
      const MeasureTask part = part_of(task, block.sample, block.sample + block.samples);
      const at::Tensor gaps = certifier.gaps(part, radius_ * (1 + kBallTolerance));
      for (std::int64_t b = 0; b < block.samples; ++b) result.values.push_back(share_that_stays(gaps[b]));
    }
    return result;
  }

 private:
  // A gap that is no number proves nothing either.
  static double share_that_stays(const at::Tensor& gaps) {
    const at::Tensor open = (gaps > 0).logical_not().to(at::kChar).contiguous();
    const std::int64_t top = open.size(0), others = open.size(1);
    const std::span pairs(open.const_data_ptr<std::int8_t>(), static_cast<std::size_t>(open.numel()));
    const std::int64_t left = most_swaps(pairs, top, others);
    return static_cast<double>(top - left) / static_cast<double>(top);
  }

  PairChoice pairs_;
  double radius_;
  bool project_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<CertifiedOverlap>(certified_overlap_info());
}

}  // namespace holdfast::measure::certified_overlap
