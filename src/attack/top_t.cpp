// top_t: lowers the importance of the clean top t features.
//     minimise  sum_{i in S_t} a_i(x'),   a = n |I| / sum |I|,   S_t the top t of the clean map
//     x <- project(x - step * sign(g)),   g its gradient           (for linf; descend.h for the other norms)
// Ghorbani, Abid, Zou, "Interpretation of Neural Networks is Fragile", AAAI 2019; settings of the LENS paper as presets.
//
// Directions come from a surrogate with softplus (beta 1) in place of ReLU, as in the paper: a ReLU network's own map is constant
// inside a linear region. What is measured is the true model. The paper keeps the iterate with the lowest rank correlation:
// --metric kendall --select worst; iterates whose label changed are skipped there and here.

#include "check.h"
#include "feature_maps.h"
#include "gradient_attack.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/top_k.h"
#include "published.h"
#include "share_inside.h"

namespace holdfast::attack::top_t {

const MethodInfo kInfo{.name = "top_t",
                       .summary = "gradient attack that lowers the share of the clean top t features",
                       .citation = "Ghorbani, Abid, Zou, Interpretation of Neural Networks is Fragile, AAAI 2019",
                       .options = with_walk_options({{"t", 0, at_least(0), "features that are attacked; 0: the metric's k"}},
                                                    {.surrogate = "softplus"}),
                       .presets = lens_presets(/*with_t=*/true),
                       .needs = {"gradients of gradients", "layers, unless surrogate=none"}};

class TopT final : public GradientAttack {
 public:
  explicit TopT(const Options& options) : GradientAttack(options), t_(options.integer("t")) {}

  void check(const AttackTask& task) const override {
    GradientAttack::check(task);
    (void)top_count(task, t_, name(), "t");
  }

 private:
  std::unique_ptr<Descent> descent(const AttackTask& task, const Explanation& clean) const override {
    const std::int64_t t = top_count(task, t_, name(), "t");
    const at::Tensor mask = weigh_features(task.map_schema().layout, clean.maps, [&](auto map, auto row) {
      for (const std::int64_t i : top_k_set(map, t)) row[static_cast<std::size_t>(i)] = 1;
    });
    return share_inside(spread_features(task.map_schema().layout, mask, clean.maps).to(clean.maps.options()), /*raise=*/false);
  }

  std::int64_t t_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<TopT>(kInfo);
}

}  // namespace holdfast::attack::top_t
