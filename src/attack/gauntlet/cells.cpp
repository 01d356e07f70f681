// cells: the activation cells of a small ReLU network, by branch and bound (exact/cell_search.h). Every crossing of kinks inside
// the ball is solved exactly. Where the search ends before its limit nothing worse exists, and the sample is done.
//
// It looks twice. At first shortly, from the clean point: that ends the search for most samples in small balls. Then, behind the
// walks of the first restart, longer and from what they found: a part that is no worse than the best point need not be looked
// into, so a low start saves most of the parts.
#include "../exact/search_sample.h"
#include "component.h"

namespace holdfast::attack::gauntlet {
namespace {

class Cells final : public Component {
 public:
  // A node costs about what a gradient evaluation does.
  explicit Cells(std::int64_t nodes) : nodes_(nodes) {}

  std::string name() const override { return "cells"; }
  bool fits(const AttackState& state) const override {
    if (!state.small || state.stage() != Stage::kFirst || exact::why_not(state.task)) return false;
    return !exact::is_of_order(state.task) || state.features <= kMostOrdered;
  }

  void run(AttackState& state) override {
    exact::search_samples(state.task, {.nodes = state.scaled_alone(nodes_)}, state.clean, state.ledger,
                          [&] { return state.expected_left(); });
  }

 private:
  // Features of which all pairs are bounded in passing.
  static constexpr std::int64_t kMostOrdered = 48;
  std::int64_t nodes_;
};

constexpr std::int64_t kFirstNodes = 500, kNodes = 10000;

}  // namespace

std::unique_ptr<Component> make_first_cells() {
  return std::make_unique<Cells>(kFirstNodes);
}
std::unique_ptr<Component> make_cells() {
  return std::make_unique<Cells>(kNodes);
}

}  // namespace holdfast::attack::gauntlet
