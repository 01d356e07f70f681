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

  void run(AttackState& state) override { return state.small ? walk_often(state) : walk_far(state); }

 private:
  static constexpr std::int64_t kWalks = 60, kSteps = 40, kLongRounds = 5, kLongSteps = 120, kNumber = 300;

  static void walk_often(AttackState& state) {
    const AttackState::Rounds rounds = state.scaled_rounds(kWalks, 1);
    for (std::int64_t i = 0; i < rounds.count; ++i) {
      const Ledger::Owners owners = state.rows(rounds.walks);
      if (owners.empty()) return;
      const at::Tensor u = state.uniform(owners, "gauntlet.contrast", kNumber + i);
      const auto descent = contrast_descent(state, state.aim, owners, 0.1 + u * u);
      state.walk_down(*descent, owners, {.number = kNumber + i, .steps = kSteps, .from = 2, .to = 32});
    }
  }

  static void walk_far(AttackState& state) {
    const AttackState::Walks walks = state.scaled_walks(kLongRounds, kLongSteps);
    for (std::int64_t i = 0; i < walks.count; ++i) {
      const Ledger::Owners owners = state.rows();
      if (owners.empty()) return;
      const auto descent = contrast_descent(state, state.aim, owners);
      const bool smooth = (i % 2 == 0) == (state.stage() == Stage::kFirst);
      state.walk_down(*descent, owners,
                      {.number = kNumber + i, .steps = walks.steps, .from = smooth ? 1.0 : 3.0, .to = smooth ? 60.0 : 100.0});
    }
  }
};

}  // namespace

std::unique_ptr<Component> make_contrast() {
  return std::make_unique<Contrast>();
}

}  // namespace holdfast::attack::gauntlet
