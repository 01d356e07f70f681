// random: the worst of many random points of the threat model, for each sample its own.
// The baseline that every other attack must beat: on ReLU nets the best of 1000 points beats the papers' gradient attacks.
//
// Points are uniform in the ball or on its surface (draw.h). They have no order, so the worst preserved one is returned
// whatever the task's selection says.
#include "check.h"
#include "draw.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "ledger.h"
#include "replay_queue.h"
#include "walk.h"

namespace holdfast::attack::random {

const MethodInfo kInfo{
    .name = "random",
    .summary = "worst of many random points in the ball, or on its surface",
    .options = {{"samples", 300, at_least(1), "points tried for each input; 300 cost as much as 100 steps of er"},
                {"from", "ball", one_of({"ball", "sphere"}), "uniform in the ball, or on its surface"}}};

class Random final : public Attack {
 public:
  explicit Random(const Options& options)
      : Attack(options.canonical()), samples_(options.integer("samples")), on_sphere_(options.word("from") == "sphere") {}

  void check(const AttackTask& task) const override { check_task(task); }
  Select selects(Select) const override { return Select::kWorst; }
  double expected_evaluations(const Explainer& explainer, const Schema& schema) const override {
    return static_cast<double>(samples_ * explainer.evaluations(schema));
  }

  AttackResult run(const AttackTask& task) const override {
    check(task);
    ExplainTask point = explain_at(task, task.samples.inputs);
    Ledger ledger(task, task.explainer.attribute(point), selects(task.select));
    ledger.charge(task.explainer.evaluations(*task.samples.schema));
    look_at_start(task, ledger, name());
    Walkers rows = Walkers::of(task);
    at::Tensor owners;  // on the device
    ReplayQueue queue;  // what the ledger hears of later, where a GPU judges the rows
    const std::int64_t cost = task.explainer.evaluations(*task.samples.schema);
    for (std::int64_t i = 0; i < samples_ && !ledger.finished(); ++i) {
      throw_if_interrupted();
      if (queue.is_empty()) {
        if (const auto kept = ledger.shrink(rows.owners)) {
          rows.keep(*kept);
          owners = at::Tensor();
        }
      }
      const std::uint64_t seed = derived_seed(task.seed, "attack.random", static_cast<std::uint64_t>(i));
      point.samples.inputs = draw_points(task.threat, rows.clean, rows.ids, seed, on_sphere_);
      point.samples.targets = rows.targets;
      point.samples.ids = rows.ids;
      const Explanation there = task.explainer.attribute(point);
      if (ledger.batch_judge() == nullptr) {
        ledger.charge(cost, rows.owners);
        ledger.record(point.samples.inputs, there, rows.owners);
        continue;
      }
      if (!owners.defined())
        owners = at::tensor(at::ArrayRef<std::int64_t>(rows.owners), at::kLong).to(task.samples.inputs.device(), true);
      queue.add(
          ledger.batch_judge()->read(there, owners),
          [&ledger, cost, points = point.samples.inputs, own = rows.owners](std::span<const double> numbers) {
            if (ledger.finished(own)) return;
            ledger.charge(cost, own);
            ledger.record_judged(points, {numbers.first(own.size()), numbers.last(own.size())}, own);
          },
          static_cast<std::int64_t>(point.samples.inputs.nbytes()));
      queue.end_step();
      if (queue.is_full()) queue.run();
    }
    queue.run();
    return ledger.finish();
  }

 private:
  std::int64_t samples_;
  bool on_sphere_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<Random>(kInfo);
}

}  // namespace holdfast::attack::random
