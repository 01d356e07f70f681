// random_sign: every element moves up or down by chance.
//     mode=fresh   x' = project(x + epsilon * s): new signs s for each point, a corner of the linf ball
//     mode=walk    x <- project(x + step * s): a random walk
// The sign of Gaussian noise is the LENS paper's weakest baseline (Kamath et al., AAAI 2024); its code walks and keeps the worst
// iterate. In other norms a point or step has length epsilon or `step_size`: signs scaled to it.
//
// Fresh points have no order, so the worst preserved one is returned whatever the task's selection says.

#include "check.h"
#include "descend.h"
#include "draw.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "published.h"
#include "walk.h"

namespace holdfast::attack::random_sign {

const MethodInfo kInfo{
    .name = "random_sign",
    .summary = "worst of many points whose elements all moved up or down by chance",
    .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
    .options = {{"steps", 100, at_least(1), "points that are tried"},
                {"step_size", 0.0, at_least(0), "length of a step of a walk in the threat's norm; 0: epsilon / steps"},
                {"mode", "fresh", one_of({"fresh", "walk"}), "points of their own at the full epsilon, or a random walk"}},
    .presets = lens_presets(/*with_t=*/false, {{"mode", std::string("walk")}})};

class RandomSign final : public Attack {
 public:
  explicit RandomSign(const Options& options)
      : Attack(options.canonical()),
        steps_(options.integer("steps")),
        step_size_(options.real("step_size")),
        walks_(options.word("mode") == "walk") {}

  void check(const AttackTask& task) const override { check_task(task); }
  Select selects(Select asked) const override { return walks_ ? asked : Select::kWorst; }
  double expected_evaluations(const Explainer& explainer, const Schema& schema) const override {
    return static_cast<double>(steps_ * explainer.evaluations(schema));
  }

  AttackResult run(const AttackTask& task) const override {
    check(task);
    const double walked = step_size_ > 0 ? step_size_ : task.threat.epsilon / static_cast<double>(steps_);
    const double step = walks_ ? walked : task.threat.epsilon;
    ExplainTask point = explain_at(task, task.samples.inputs);
    Ledger ledger(task, task.explainer.attribute(point), selects(task.select));
    ledger.charge(task.explainer.evaluations(*task.samples.schema));
    look_at_start(task, ledger, name());
    Walkers walkers = Walkers::of(task);
    StepNotes notes;
    for (std::int64_t i = 0; i < steps_ && !ledger.finished(); ++i) {
      throw_if_interrupted();
      if (const auto kept = ledger.shrink(walkers.owners)) walkers.keep(*kept);
      const std::uint64_t seed = derived_seed(task.seed, "attack.random_sign", static_cast<std::uint64_t>(i));
      const at::Tensor signs = draw_signs(walkers.clean, walkers.ids, seed);
      const at::Tensor& from = walks_ ? walkers.points : walkers.clean;
      walkers.points = descend(task.threat, from, signs, walkers.clean, step, notes);
      ledger.count_projections(notes.projected, walkers.owners);
      ledger.charge(task.explainer.evaluations(*task.samples.schema), walkers.owners);
      point.samples.inputs = task.threat.admit(walkers.points, walkers.clean);
      point.samples.targets = walkers.targets;
      point.samples.ids = walkers.ids;
      ledger.record(point.samples.inputs, task.explainer.attribute(point), walkers.owners);
    }
    return ledger.finish();
  }

 private:
  std::int64_t steps_;
  double step_size_;
  bool walks_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<RandomSign>(kInfo);
}

}  // namespace holdfast::attack::random_sign
