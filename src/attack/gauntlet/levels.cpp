// levels: where categories may switch, every single other level of every group, from the clean row and from the best point; then
// again from what was found, as long as it gains. Walks start from random levels, of which they keep theirs; this tries all.
#include <algorithm>

#include "component.h"
#include "holdfast/core/torch.h"
#include "search_points.h"

namespace holdfast::attack::gauntlet {
namespace {

class Levels final : public Component {
 public:
  std::string name() const override { return "levels"; }
  bool starts_from_best() const override { return true; }
  bool fits(const AttackState& state) const override {
    return state.task.threat.switches && state.task.threat.switches->most > 0;
  }

  void run(AttackState& state) override {
    try_all(state, state.task.samples.inputs);
    for (std::int64_t round = 0; round <= state.task.threat.switches->most; ++round) {
      const std::vector<double> before = values(state);
      try_all(state, state.ledger.best_points());
      if (values(state) == before) return;
    }
  }

 private:
  static std::vector<double> values(const AttackState& state) {
    std::vector<double> result;
    for (const std::int64_t sample : state.rows()) result.push_back(state.ledger.best_value(sample));
    return result;
  }

  // Every level of every group in turn, for all running samples; `from` has one row for each sample. More switches than allowed
  // are cut to the first, which are the new one and others of the point.
  static void try_all(AttackState& state, const at::Tensor& from) {
    const ThreatModel& threat = state.task.threat;
    for (const std::vector<std::int64_t>& columns : threat.switches->groups) {
      for (const std::int64_t level : columns) {
        const Ledger::Owners owners = state.rows();
        if (owners.empty()) return;
        at::Tensor points = AttackState::rows_of(from, owners).clone();
        for (const std::int64_t column : columns) points.flatten(1).select(1, column).fill_(column == level ? kStrong : 0);
        state.judge(threat.project(points, AttackState::rows_of(state.task.samples.inputs, owners)), owners);
      }
    }
  }
  static constexpr double kStrong = 2;  // above any level of the point, so that this switch is not the one that is cut
};

}  // namespace

std::unique_ptr<Component> make_levels() {
  return std::make_unique<Levels>();
}

}  // namespace holdfast::attack::gauntlet
