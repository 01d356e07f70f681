// cells: the activation cells of a small ReLU network, by branch and bound (exact/cell_search.h). Every crossing of kinks inside
// the ball is solved exactly. Where the search ends before its limit nothing worse exists, and the sample is done.
#include "../exact/search_sample.h"
#include "component.h"

namespace holdfast::attack::gauntlet {
namespace {

class Cells final : public Component {
 public:
  std::string name() const override { return "cells"; }
  bool fits(const AttackState& state) const override {
    return state.small && state.stage() == Stage::kFirst && !exact::why_not(state.task);
  }

  void run(AttackState& state) override {
    exact::search_samples(state.task, {.nodes = state.scaled_alone(kNodes)}, state.clean, state.ledger,
                          [&] { return state.expected_left(); });
  }

 private:
  // A node costs about what a gradient evaluation does.
  static constexpr std::int64_t kNodes = 6000;
};

}  // namespace

std::unique_ptr<Component> make_cells() {
  return std::make_unique<Cells>();
}

}  // namespace holdfast::attack::gauntlet
