// mass_center: pushes the map's centre of mass away from where it was.
//     maximise  || C(x') - C(x) ||_2^2,   C = sum_i c_i |I_i| / sum_i |I_i|,   c_i the row and column of pixel i
// Ghorbani, Abid, Zou, "Interpretation of Neural Networks is Fragile", AAAI 2019; settings of the LENS paper as presets.
//
// Grids only. Of a pair of images each side has a centre; the squared ways of both are added. At x' = x the gradient is zero, so
// the walk starts a hundredth of epsilon away (start=near). Directions come from a softplus surrogate, as for top_t.

#include <limits>

#include "feature_maps.h"
#include "gradient_attack.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "published.h"

namespace holdfast::attack::mass_center {

const MethodInfo kInfo{.name = "mass_center",
                       .summary = "gradient attack that pushes the map's centre of mass away",
                       .citation = "Ghorbani, Abid, Zou, Interpretation of Neural Networks is Fragile, AAAI 2019",
                       .options = with_walk_options({}, {.start = "near", .surrogate = "softplus"}),
                       .presets = lens_presets(/*with_t=*/false),
                       .needs = {"images", "gradients of gradients", "layers, unless surrogate=none"}};

class Center final : public Descent {
 public:
  Center(const Layout& layout, const at::Tensor& clean_maps) : layout_(layout) {
    const at::Tensor y = at::arange(layout.height, clean_maps.options()).view({layout.height, 1});
    const at::Tensor x = at::arange(layout.width, clean_maps.options()).view({1, layout.width});
    places_ = at::stack({y.expand({layout.height, layout.width}), x.expand({layout.height, layout.width})}).flatten(1);
    clean_ = center(masses(clean_maps));
  }

  // d |C' - C|^2 / d |I_i| = 2 (C' - C) . (c_i - C') / sum |I|, side by side.
  at::Tensor gradient(Linearization& here, const ExplainTask&) override {
    const at::Tensor& maps = here.at().maps;
    const at::Tensor mass = masses(maps);
    const at::Tensor now = center(mass), way = now - clean_;                   // [rows, sides, 2]
    const at::Tensor along = at::matmul(way, places_);                         // [rows, sides, pixels]
    const at::Tensor pull = (along - (way * now).sum(2, true)) / total(mass);  // [rows, sides, pixels]
    return here.pullback(-spread_features(layout_, pull.flatten(1), maps) * maps.sign());
  }

  void keep(const at::Tensor& rows) override { clean_ = clean_.index_select(0, rows.to(clean_.device())); }

 private:
  // Magnitudes with the channels summed, [rows, sides, pixels].
  at::Tensor masses(const at::Tensor& maps) const {
    return maps.abs().reshape({maps.size(0), layout_.sides, layout_.channels, layout_.side_features()}).sum(2);
  }
  static at::Tensor total(const at::Tensor& mass) { return mass.sum(2, true).clamp_min(std::numeric_limits<float>::min()); }
  at::Tensor center(const at::Tensor& mass) const { return at::matmul(mass / total(mass), places_.t()); }

  Layout layout_;
  at::Tensor places_;  // [2, pixels]
  at::Tensor clean_;   // [rows, sides, 2]
};

class MassCenter final : public GradientAttack {
 public:
  explicit MassCenter(const Options& options) : GradientAttack(options) {}

  void check(const AttackTask& task) const override {
    GradientAttack::check(task);
    if (task.samples.layout().kind != Layout::Kind::kGrid)
      usage_error("{}: a {} has no centre of mass; images have", name(), task.samples.layout().describe());
  }

 private:
  std::unique_ptr<Descent> descent(const AttackTask& task, const Explanation& clean) const override {
    return std::make_unique<Center>(task.map_schema().layout, clean.maps);
  }
};

void add_to(Registry<Attack>& registry) {
  registry.add<MassCenter>(kInfo);
}

}  // namespace holdfast::attack::mass_center
