// mse: moves the map as far as possible, whichever features that raises or lowers.
//     maximise  || I(x') - I(x) ||_2,     I with its signs, at its true scale
//     x <- project(x + step * g / ||g||_2),   g its gradient
// The MSE attack of Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024 (after Dombrowski et al. 2019).
//
// The gradient is undefined at x' = x, so the walk starts at a random point a hundredth of epsilon away, its own for each sample
// (start=near). The paper does not say how it leaves x.

#include <limits>

#include "feature_maps.h"
#include "gradient_attack.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"
#include "published.h"

namespace holdfast::attack::mse {

const MethodInfo kInfo{.name = "mse",
                       .summary = "gradient attack that moves the whole map as far as possible",
                       .citation = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024",
                       .options = with_walk_options({}, {.start = "near"}),
                       .presets = r2et_presets(),
                       .needs = {"gradients of gradients"}};

// Scales of two maps are told apart up to e^30: beyond it one of them is nothing beside the other.
constexpr double kLargestRatio = 30;

class Distance final : public Descent {
 public:
  explicit Distance(const Explanation& clean) : maps_(clean.maps), log_scale_(clean.log_scale) {}

  // Both maps in units of the clean one's scale. The scale at x' is a constant, so it multiplies the cotangent and no more.
  at::Tensor gradient(Linearization& here, const ExplainTask&) override {
    const Explanation& now = here.at();
    const at::Tensor ratio = (now.log_scale - log_scale_).clamp(-kLargestRatio, kLargestRatio).exp().to(now.maps.dtype());
    const at::Tensor difference = now.maps * per_row(ratio, now.maps.dim()) - maps_;
    const at::Tensor length = difference.flatten(1).norm(2, 1).clamp_min(std::numeric_limits<float>::min());
    return here.pullback(-difference / per_row(length, now.maps.dim()));
  }

  void keep(const at::Tensor& rows) override {
    for (at::Tensor* tensor : {&maps_, &log_scale_}) *tensor = tensor->index_select(0, rows.to(tensor->device()));
  }

 private:
  at::Tensor maps_, log_scale_;
};

class Mse final : public GradientAttack {
 public:
  explicit Mse(const Options& options) : GradientAttack(options) {}

 private:
  std::unique_ptr<Descent> descent(const AttackTask&, const Explanation& clean) const override {
    return std::make_unique<Distance>(clean);
  }
};

void add_to(Registry<Attack>& registry) {
  registry.add<Mse>(kInfo);
}

}  // namespace holdfast::attack::mse
