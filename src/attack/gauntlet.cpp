// gauntlet: the worst of a few diverse attacks, without parameters, for any model, explainer, metric and threat model.
//
// Its components (gauntlet/) propose points, one ledger keeps the worst preserved one of every sample and says which component
// found it. So it is never better for the defender than any of them, nor than random points. Components that need gradients are
// left out where explainer or model have none.
//
// The work comes in stages (gauntlet/state.h): two restarts that know nothing of each other, then searches from the better one's
// point. A sample leaves when it is broken completely, when nothing worse exists (cells), or when the third stage found nothing
// more; the others go on. How far the worse restart stayed behind is kept (restart_gap): where it is not small, more effort will
// find more. So is how far results still moved in the last fifth of a sample's work (late_gain).
//
// noise=expected, for explainers that draw noise (smooth_grad): points are looked for that break the map whatever the noise is;
// the directions come from another draw at every step, the best points are chosen by one draw, and what is reported is measured
// by the explainer's own, which no component saw.
//
// For models with kinks directions come from a surrogate with softplus of a width that falls during a walk; what is measured
// is always the model itself. Scales of that width are read off task.reference, so that results do not depend on the tile.
#include "check.h"
#include "gauntlet/component.h"
#include "holdfast/attack/attack.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tile_work.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack::gauntlet {

std::vector<std::unique_ptr<Component>> components() {
  std::vector<std::unique_ptr<Component>> all;
  all.push_back(make_random());
  all.push_back(make_first_cells());
  all.push_back(make_contrast());
  all.push_back(make_gaps());
  all.push_back(make_threshold());
  all.push_back(make_order());
  all.push_back(make_levels());
  all.push_back(make_crossing());
  all.push_back(make_square());
  all.push_back(make_evolution());
  all.push_back(make_drift());
  all.push_back(make_cells());
  return all;
}

const MethodInfo kInfo{
    .name = "gauntlet",
    .summary = "worst of a few diverse attacks, without parameters: the strongest there is",
    .options = {{"effort", "standard", one_of({"light", "standard", "heavy"}), "how much work: a third, one, four times"},
                {"noise", "fixed", one_of({"fixed", "expected"}),
                 "explainers that draw noise: break the map with the very noise it is reported with, or with any"}},
    .needs = {"gradients of gradients for most of it; works without"}};

double factor(const std::string& effort) {
  return effort == "light" ? 1.0 / 3 : effort == "heavy" ? 4 : 1;
}

class Gauntlet final : public Attack {
 public:
  explicit Gauntlet(const Options& options)
      : Attack(options.canonical()), effort_(factor(options.word("effort"))), any_noise_(options.word("noise") == "expected") {}

  void check(const AttackTask& task) const override { check_task(task); }
  Select selects(Select) const override { return Select::kWorst; }
  double expected_evaluations(const Explainer& explainer, const Schema& schema) const override {
    return gauntlet::expected_evaluations(effort_, explainer, schema);
  }

  AttackResult run(const AttackTask& task) const override {
    check(task);
    return any_noise_ ? run_with_other_noise(task) : run_components(task);
  }

 private:
  AttackResult run_components(const AttackTask& task) const {
    ExplainTask at_clean = explain_at(task, task.samples.inputs);
    at_clean.keep_signs = true;
    const Explanation clean = task.explainer.attribute(at_clean);
    Ledger ledger(task, clean, Select::kWorst);
    ledger.charge(task.explainer.evaluations(*task.samples.schema));
    AttackState state(task, ledger, clean, effort_, any_noise_);
    ledger.keep_history();
    look_at_start(task, ledger);
    for (const Stage stage : {Stage::kFirst, Stage::kSecond}) {
      ledger.begin_restart();
      run_stage(stage, state, ledger);
    }
    ledger.join_restarts();
    run_stage(Stage::kThird, state, ledger);
    ledger.leave_settled();
    run_stage(Stage::kLast, state, ledger);
    return ledger.finish();
  }

  static void run_stage(Stage stage, AttackState& state, Ledger& ledger) {
    state.begin(stage);
    for (const auto& component : components()) {
      throw_if_interrupted();
      if (ledger.finished()) return;
      if ((!state.is_restart() && !component->starts_from_best()) || !component->fits(state)) continue;
      ledger.begin_component(component->name());
      TileWork::expect_left(state.expected_left());
      component->run(state);
    }
  }

  // Points are found with noise that is not the reported one, another draw for every direction, and then judged by it.
  AttackResult run_with_other_noise(const AttackTask& task) const {
    AttackTask other = task;
    other.seed = derived_seed(task.seed, "gauntlet.other noise");
    AttackResult found = run_components(other);
    Ledger ledger(task, task.explainer.attribute(explain_at(task, task.samples.inputs)), Select::kWorst);
    ledger.record(found.perturbed, task.explainer.attribute(explain_at(task, found.perturbed)));
    AttackResult result = ledger.finish();
    for (std::size_t i = 0; i < result.samples.size(); ++i) {
      SampleOutcome& outcome = found.samples[i];
      outcome.value = result.samples[i].value;
      outcome.margin = result.samples[i].margin;
      outcome.evaluations += 2 * task.explainer.evaluations(*task.samples.schema);
      if (result.samples[i].iteration > 0) continue;  // else the map broke for the other noise only: the clean input it is
      outcome.iteration = 0;
      outcome.component.clear();
    }
    result.samples = std::move(found.samples);
    result.components = std::move(found.components);
    return result;
  }

  double effort_;
  bool any_noise_;
};

void add_to(Registry<Attack>& registry) {
  registry.add<Gauntlet>(kInfo);
}

}  // namespace holdfast::attack::gauntlet
