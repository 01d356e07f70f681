// gaps: lowers randomly weighted gaps between the top k and the rest, from many starts.
//     minimise  sum_i w_i a_i / ||a||,   w = (n - k) on the clean top k and -k elsewhere, times 2 u^2, u uniform for each walk
// Dividing by ||a|| takes out the direction that only makes the model more confident. Random weights send each walk after other
// features: for small samples many short walks find far more than one long one.
#include <limits>

#include "component.h"
#include "feature_descent.h"
#include "holdfast/core/torch.h"

namespace holdfast::gauntlet {
namespace {

constexpr std::int64_t kWalks = 40, kSteps = 20;

class WeightedGaps final : public FeatureDescent {
 public:
  WeightedGaps(const Layout& layout, at::Tensor weights) : FeatureDescent(layout), weights_(std::move(weights)) {}

 private:
  at::Tensor slope(const at::Tensor& a) override {
    const at::Tensor norm = a.norm(2, 1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::min());
    const at::Tensor value = (weights_ * a).sum(1, /*keepdim=*/true) / norm;
    return weights_ - a * (value / norm);
  }
  std::vector<at::Tensor*> state() override { return {&weights_}; }

  at::Tensor weights_;
};

class Gaps final : public Component {
 public:
  std::string name() const override { return "gaps"; }
  bool fits(const Arena& arena) const override { return arena.gradients && arena.small && arena.k < arena.features; }

  void run(Arena& arena) override {
    const double n = static_cast<double>(arena.features), k = static_cast<double>(arena.k);
    const at::Tensor gaps = arena.top * n - k;  // n - k on the top, -k elsewhere
    std::int64_t walk = 0;
    // Without kinks there is one surrogate, the model itself: all walks go by it.
    const std::vector<double> sharpness{2, 8, 32};
    for (const double r : sharpness) {
      const Ledger::Owners owners = arena.rows(arena.scaled(kWalks));
      if (owners.empty()) return;
      const at::Tensor u = arena.uniform(owners, "gauntlet.gaps", walk);
      WeightedGaps descent(arena.task.schema.layout, Arena::rows_of(gaps, owners) * (2 * u * u));
      arena.hunt(descent, owners, walk++, kSteps, arena.surrogate(r, r, kSteps));
    }
  }
};

}  // namespace

std::unique_ptr<Component> make_gaps() {
  return std::make_unique<Gaps>();
}

}  // namespace holdfast::gauntlet
