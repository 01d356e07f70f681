// cells: the activation cells of a small ReLU network, by branch and bound (exact/cell_search.h). Every crossing of kinks inside
// the ball is solved exactly. Where the search ends before its limit nothing worse exists, and the sample is done.
#include "../batch_reading.h"
#include "../exact/read_chain.h"
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
    const exact::Chain chain = exact::read_chain(*state.task.model.network());
    BatchReading reading(*state.task.samples.schema, /*with_probabilities=*/false);
    reading.read_maps(state.clean.maps);
    state.ledger.begin_iteration();
    for (std::int64_t sample = 0; sample < state.task.samples.count(); ++sample)
      exact::search_sample(state.task, chain, {.nodes = state.scaled_alone(kNodes)}, *reading.map(sample), sample, state.ledger);
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
