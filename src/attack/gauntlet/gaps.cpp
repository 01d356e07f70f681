// gaps: lowers randomly weighted gaps between the top k and the rest, from many starts: anywhere, and around the best point.
//     minimise  sum_i w_i a_i / ||a||,   w = (n - k) on the clean top k and -k elsewhere, times 2 u^2, u uniform for each walk
// Dividing by ||a|| takes out the direction that only makes the model more confident. Random weights send each walk after other
// features: for small samples many short walks find far more than one long one.
#include <limits>

#include "component.h"
#include "feature_descent.h"
#include "holdfast/core/torch.h"
#include "slopes.h"

namespace holdfast::attack::gauntlet {
namespace {

class WeightedGaps final : public FeatureDescent {
 public:
  WeightedGaps(const Layout& layout, at::Tensor weights) : FeatureDescent(layout), weights_(std::move(weights)) {}

 private:
  at::Tensor slope(const at::Tensor& a) override {
    const at::Tensor norm = a.norm(2, 1, /*keepdim=*/true).clamp_min(std::numeric_limits<float>::min());
    const at::Tensor value = (weights_ * a).sum(1, /*keepdim=*/true) / norm;
    return weights_ - a * (value / norm);
  }
  bool has_rows() const override { return weights_.scalar_type() == at::kFloat && weights_.is_contiguous(); }
  void slope_of_row(std::int64_t row, std::span<const float> values, float* slope) override {
    slopes::gaps(values, weights_.const_data_ptr<float>() + row * weights_.size(1), slope);
  }
  std::vector<at::Tensor*> state() override { return {&weights_}; }

  at::Tensor weights_;
};

class Gaps final : public Component {
 public:
  std::string name() const override { return "gaps"; }
  bool starts_from_best() const override { return true; }
  bool fits(const AttackState& state) const override { return state.gradients && state.small && state.k < state.features; }

  void run(AttackState& state) override {
    const double n = static_cast<double>(state.features), k = static_cast<double>(state.k);
    const at::Tensor gaps = state.top * n - k;  // n - k on the top, -k elsewhere
    const AttackState::Rounds rounds = state.scaled_rounds(kWalks, 2);
    for (std::int64_t i = 0; i < rounds.count; ++i) {
      const Ledger::Owners owners = state.rows(rounds.walks);
      if (owners.empty()) return;
      const at::Tensor u = state.uniform(owners, "gauntlet.gaps", i);
      WeightedGaps descent(state.task.map_schema().layout, AttackState::rows_of(gaps, owners) * (2 * u * u));
      const bool anywhere = i % 2 == 0 && state.is_restart();
      const auto start = anywhere ? AttackState::WalkPlan::Start::kAnywhere : AttackState::WalkPlan::Start::kAroundBest;
      state.walk_down(descent, owners, {.number = i, .steps = kSteps, .from = 2, .to = 32, .start = start});
    }
  }

 private:
  static constexpr std::int64_t kWalks = 140, kSteps = 40;
};

}  // namespace

std::unique_ptr<Component> make_gaps() {
  return std::make_unique<Gaps>();
}

}  // namespace holdfast::attack::gauntlet
