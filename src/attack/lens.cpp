// lens: lowers the importance of the whole neighbourhood of the clean top t features.
//     minimise  sum_{i in N_w(S_t)} a_i(x'),   a = n |I| / sum |I|,   S_t the top t of the clean map, N_w all within w of it
// The LENS paper's own attack on its locality-sensitive metrics: Kamath et al., "Rethinking Robustness of Model Attributions",
// AAAI 2024, appendix E.1, which finds it weaker than top_t on all metrics. On MNIST N_1(S_200) is so wide that there is hardly
// anywhere left to go; a smaller t helps.
//
// The neighbourhood is the metrics' (neighborhood.h): windows on images, groups on tables, edges that share a node on graphs.
// Directions come from a softplus surrogate, as for top_t.

#include "check.h"
#include "feature_maps.h"
#include "gradient_attack.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/neighborhood.h"
#include "holdfast/metric/top_k.h"
#include "published.h"
#include "share_inside.h"

namespace holdfast::attack::lens_attack {

const MethodInfo kInfo{.name = "lens",
                       .summary = "gradient attack that lowers the share of the neighbourhood of the clean top t features",
                       .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
                       .options = with_walk_options({{"t", 0, at_least(0), "features that are attacked; 0: the metric's k"},
                                                     {"w", 1, at_least(0), "radius of the neighbourhood"}},
                                                    {.surrogate = "softplus"}),
                       .presets = lens_presets(/*with_t=*/true),
                       .needs = {"gradients of gradients", "layers, unless surrogate=none"}};

class Lens final : public GradientAttack {
 public:
  explicit Lens(const Options& options) : GradientAttack(options), t_(options.integer("t")), w_(options.integer("w")) {}

  void check(const AttackTask& task) const override {
    GradientAttack::check(task);
    (void)top_count(task, t_, name(), "t");
  }

 private:
  std::unique_ptr<Descent> descent(const AttackTask& task, const Explanation& clean) const override {
    const std::int64_t t = top_count(task, t_, name(), "t");
    const Neighborhood neighborhood(task.map_schema(), w_);
    FeatureSet near;
    const at::Tensor mask = weigh_features(task.map_schema().layout, clean.maps, [&](auto map, auto row) {
      neighborhood.reset(near);
      for (const std::int64_t i : top_k_set(map, t)) near.add(i);
      neighborhood.grow(near);
      for (const std::int64_t i : near.members()) row[static_cast<std::size_t>(i)] = 1;
    });
    return share_inside(spread_features(task.map_schema().layout, mask, clean.maps).to(clean.maps.options()), /*raise=*/false);
  }

  std::int64_t t_, w_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<Lens>(kInfo);
}

}  // namespace holdfast::attack::lens_attack
