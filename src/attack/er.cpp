// er: lowers the gaps between the top k features and the others (ERAttack).
//     minimise  sum_{i <= k < j} h(x', i, j),   h(x, i, j) = I(x)_i - I(x)_j,   features in the clean order
//     x <- project(x - step * g / ||g||_2),     g its gradient
// Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024 ("Robust Ranking Explanations", 2023).
//
// The clean ranking and the clean signs are held fixed: with s_i the sign of I(x)_i the objective is sum_i w_i s_i I(x')_i,
//     pairs=all      w = 1/k on the top k, -1/(n-k) on the others: the mean over all pairs
//     pairs=next-k   w = 1/k on the top k, -1/k on the next k: the pairs of the authors' code, whose sum telescopes
// linear in n, never n^2. Channels of a pixel share its weight. Steps are as long as `step_size` in the threat's norm
// (descend.h): the paper's rule for l2, signs of the gradient for linf.
//
// select=last is the paper's rule: stop at the first label flip, return the last preserved iterate. select=worst walks on
// along the same iterates, skips those whose label flipped, and returns the worst of the others. Either way a sample that
// flips at its first step counts as not moved.
//
// Departs from the paper: the gradient of a saturated probability keeps its direction (logit_cotangent.h). Departs from the
// authors' code: all samples at once; the evaluation at x_{t+1} is the next step's gradient, so that an iteration costs one
// forward, one gradient and one double backward.

#include "check.h"
#include "feature_maps.h"
#include "gradient_attack.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/top_k.h"
#include "published.h"

namespace holdfast::attack::er {

const MethodInfo kInfo{.name = "er",
                       .summary = "gradient attack that lowers the gaps between the top k features and the others",
                       .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
                       .options = with_walk_options({{"k", 0, at_least(0), "size of the top that is attacked; 0: the metric's k"},
                                                     {"pairs", "all", one_of({"all", "next-k"}),
                                                      "gaps to all other features, or to the next k as in the authors' code"}}),
                       .presets = r2et_presets(),
                       .needs = {"gradients of gradients"}};

// w_i of the features of one map, into zeros.
void pair_weights(std::span<const double> map, std::int64_t k, bool all_pairs, std::span<double> weights) {
  const auto n = static_cast<std::int64_t>(map.size());
  const double inside = 1.0 / static_cast<double>(k);
  if (k == n) return;  // no pairs
  if (all_pairs) {
    std::fill(weights.begin(), weights.end(), -1.0 / static_cast<double>(n - k));
  } else {
    for (const std::int64_t i : top_k_set(map, std::min(2 * k, n))) weights[static_cast<std::size_t>(i)] = -inside;
  }
  for (const std::int64_t i : top_k_set(map, k)) weights[static_cast<std::size_t>(i)] = inside;
}

class Er final : public GradientAttack {
 public:
  explicit Er(const Options& options)
      : GradientAttack(options), k_(options.integer("k")), all_pairs_(options.word("pairs") == "all") {}

  void check(const AttackTask& task) const override {
    GradientAttack::check(task);
    (void)top_count(task, k_, name());
  }

 private:
  std::unique_ptr<Descent> descent(const AttackTask& task, const Explanation& clean) const override {
    const std::int64_t k = top_count(task, k_, name());
    const at::Tensor weights =
        weigh_features(task.map_schema().layout, clean.maps, [&](auto map, auto row) { pair_weights(map, k, all_pairs_, row); });
    const at::Tensor signs = clean.maps.cpu().to(at::kDouble).sign();
    return fixed_cotangent((spread_features(task.map_schema().layout, weights, clean.maps) * signs).to(clean.maps.options()));
  }

  std::int64_t k_;
  bool all_pairs_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<Er>(kInfo);
}

}  // namespace holdfast::attack::er
