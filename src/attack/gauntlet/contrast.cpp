// contrast: walks down the contrast between the clean top and the rest (contrast_descent.h) from anywhere in the ball. Small
// samples walk often and shortly, with random weights of their features; large ones a few times and longer.
#include "component.h"
#include "contrast_descent.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack::gauntlet {
namespace {

class Contrast final : public Component {
 public:
  std::string name() const override { return "contrast"; }
  bool fits(const AttackState& state) const override { return state.gradients && state.k < state.features; }

  void run(AttackState& state) override {
    const std::int64_t rounds = state.scaled(state.small ? kRounds : kLongRounds);
    for (std::int64_t i = 0; i < rounds; ++i) {
      const Ledger::Owners owners = state.rows(state.small ? kWalks : 1);
      if (owners.empty()) return;
      if (state.small) {
        const at::Tensor u = state.uniform(owners, "gauntlet.contrast", kNumber + i);
        const auto descent = contrast_descent(state, state.aim, owners, 0.1 + u * u);
        state.walk_down(*descent, owners, {.number = kNumber + i, .steps = kSteps, .from = 2, .to = 32});
      } else {
        const auto descent = contrast_descent(state, state.aim, owners);
        const bool smooth = i % 2 == 0;
        state.walk_down(*descent, owners,
                        {.number = kNumber + i, .steps = kLongSteps, .from = smooth ? 1.0 : 3.0, .to = smooth ? 60.0 : 100.0});
      }
    }
    const Ledger::Owners owners = state.rows();
    if (state.small || state.aim.at == Aim::At::kTop || owners.empty()) return;
    // The plain top: it breaks the other metrics' sets too, another way.
    const auto descent = contrast_descent(state, {.at = Aim::At::kTop}, owners);
    state.walk_down(*descent, owners, {.number = kNumber + rounds, .steps = kLongSteps / 2, .from = 3, .to = 60});
  }
  double expected_evaluations(const AttackState& state) const override {
    const std::int64_t steps = state.small ? state.scaled(kRounds) * kWalks * kSteps : state.scaled(kLongRounds) * kLongSteps;
    return static_cast<double>(steps) * state.step_cost();
  }

 private:
  static constexpr std::int64_t kRounds = 2, kWalks = 20, kSteps = 40, kLongRounds = 3, kLongSteps = 120, kNumber = 300;
};

}  // namespace

std::unique_ptr<Component> make_contrast() {
  return std::make_unique<Contrast>();
}

}  // namespace holdfast::attack::gauntlet
