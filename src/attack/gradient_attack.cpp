#include "gradient_attack.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "check.h"
#include "draw.h"
#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"

namespace holdfast::attack {
namespace {

// Of epsilon: the distance of start=near, and of the first step of a cosine; of that step: the last.
constexpr double kNear = 0.01, kCosineFirst = 0.5, kCosineLast = 0.02;

// Whether a softplus surrogate differs from the model at all.
bool has_kinks(const Network& network) {
  return std::any_of(network.nodes().begin(), network.nodes().end(), [](const Node& node) {
    const auto* activation = std::get_if<op::Activation>(&node.operation);
    return activation != nullptr && is_piecewise_linear(*activation);
  });
}

}  // namespace

std::vector<OptionSpec> with_walk_options(std::vector<OptionSpec> own, const WalkDefaults& defaults) {
  std::vector<OptionSpec> options{
      {"steps", 100, at_least(1), "iterations"},
      {"step_size", 0.0, at_least(0), "length of a step in the threat's norm; 0: epsilon / steps (cosine: epsilon / 2)"}};
  std::move(own.begin(), own.end(), std::back_inserter(options));
  options.push_back({"start", defaults.start, one_of({"clean", "near", "random"}),
                     "the clean input, a random point at a hundredth of epsilon, or one anywhere in the ball"});
  options.push_back({"schedule", "constant", one_of({"constant", "cosine"}),
                     "steps of one length, or falling on a half cosine to a fiftieth of it"});
  options.push_back({"momentum", 0.0, between(0, 1), "share of the earlier directions that is kept"});
  options.push_back({"surrogate", defaults.surrogate, one_of({"none", "softplus"}),
                     "directions from the model itself, or with softplus in place of its ReLUs; never what is measured"});
  options.push_back({"beta", 1.0, above(0), "sharpness of the surrogate's softplus"});
  return options;
}

GradientAttack::GradientAttack(const Options& options)
    : Attack(options.canonical()),
      steps_(options.integer("steps")),
      step_size_(options.real("step_size")),
      start_(options.word("start")),
      cosine_(options.word("schedule") == "cosine"),
      momentum_(options.real("momentum")),
      surrogate_(options.word("surrogate") == "softplus"),
      beta_(options.real("beta")) {
  if (!surrogate_ && beta_ != 1) usage_error("{}: beta is the surrogate's; write surrogate=softplus with it", name());
}

void GradientAttack::check(const AttackTask& task) const {
  check_task(task);
  check_differentiable(task, name());
  if (surrogate_ && task.model.network() == nullptr)
    usage_error("{}: a softplus surrogate needs a model whose layers are known; write surrogate=none", name());
}

// A step takes an explanation, its gradient and what judges the iterate.
double GradientAttack::expected_evaluations(const Explainer& explainer, const Schema& schema) const {
  return 3 * static_cast<double>(steps_ * explainer.evaluations(schema));
}

WalkRules GradientAttack::rules(const AttackTask& task) const {
  WalkRules rules{.steps = steps_, .momentum = momentum_};
  const double fallback = task.threat.epsilon * (cosine_ ? kCosineFirst : 1 / static_cast<double>(steps_));
  rules.first_step = step_size_ > 0 ? step_size_ : fallback;
  rules.last_step = cosine_ ? kCosineLast * rules.first_step : rules.first_step;
  if (surrogate_ && has_kinks(*task.model.network()))
    rules.surrogate = [beta = beta_](std::int64_t) { return Rule::softplus(beta); };
  return rules;
}

at::Tensor GradientAttack::start(const AttackTask& task) const {
  if (start_ == "clean") return task.samples.inputs;
  const std::uint64_t seed = derived_seed(task.seed, "attack.start");
  if (start_ == "random") return draw_points(task.threat, task.samples.inputs, task.samples.ids, seed, /*on_sphere=*/false);
  ThreatModel near = task.threat;
  near.epsilon *= kNear;
  near.valid.reset();  // an offset in the space that is walked, not a row
  return draw_points(near, task.samples.inputs, task.samples.ids, seed, /*on_sphere=*/true);
}

AttackResult GradientAttack::run(const AttackTask& task) const {
  check(task);
  const WalkRules rules = this->rules(task);
  ExplainTask clean = explain_at(task, task.samples.inputs);
  clean.keep_signs = true;
  // The clean point's linearization is also the first step's where the walk starts there.
  std::unique_ptr<Linearization> here;
  if (start_ == "clean" && !rules.surrogate) here = task.explainer.linearize(clean);
  const Explanation explanation = here ? here->at() : task.explainer.attribute(clean);
  Ledger ledger(task, explanation, task.select);
  ledger.charge(task.explainer.evaluations(*task.samples.schema));
  look_at_start(task, ledger, name());
  const std::unique_ptr<Descent> descent = this->descent(task, explanation);
  Walkers walkers = Walkers::of(task);
  walkers.points = start(task);
  walk(task, ledger, *descent, rules, std::move(walkers), std::move(here));
  return ledger.finish();
}

}  // namespace holdfast::attack
