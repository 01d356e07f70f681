#include "check.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "ledger.h"

namespace holdfast::attack {

namespace {

// What "the prediction stays" means: for a value there is no other way to say it than a tolerance.
void check_tolerance(const AttackTask& task) {
  const bool value = task.model.output_kind() == OutputKind::kValue;
  if (value && !task.threat.tolerance)
    usage_error("{} gives a value: how far may it move while the prediction stays? Give a tolerance, in its units (--tolerance)",
                task.model.name());
  if (!value && task.threat.tolerance && *task.threat.tolerance > 1)
    usage_error("tolerance is {}; it must be above 0 and at most 1: it is that of a probability", *task.threat.tolerance);
}

}  // namespace

void check_task(const AttackTask& task) {
  check_tolerance(task);
  task.explainer.check_task(explain_at(task, task.samples.inputs));
  task.metric.check(task.map_schema());
  if (task.explainer.needs_valid_rows() && !task.samples.schema->groups.empty() && !task.threat.valid && !task.threat.switches) {
    usage_error("{} is defined on valid rows alone; say how many categories may switch (--switches 0 or more), or --valid",
                task.explainer.name());
  }
  const std::vector<std::int64_t> expected = task.samples.layout().sample_shape();
  const std::vector<std::int64_t> shape = task.samples.inputs.sizes().slice(1).vec();
  if (task.samples.inputs.numel() != task.samples.inputs.size(0) * task.samples.layout().inputs()) {
    input_error("the samples have shape {}, the schema describes {}", holdfast::to_string(shape), holdfast::to_string(expected));
  }
  HOLDFAST_CHECK(task.samples.targets.numel() == task.samples.inputs.size(0) &&
                 task.samples.ids.numel() == task.samples.inputs.size(0));
}

void check_differentiable(const AttackTask& task, const std::string& attack) {
  if (!task.explainer.is_differentiable())
    usage_error("{}: {} has no gradient to follow; use gauntlet or random", attack, task.explainer.name());
  if (!task.model.capabilities().double_backward)
    usage_error("{}: the model cannot be differentiated twice; use gauntlet or random", attack);
}

std::int64_t top_count(const AttackTask& task, std::int64_t option, const std::string& attack, const char* option_name) {
  if (option == 0 && !task.metric.top_count()) {
    const std::string method = attack.substr(0, attack.find('('));
    usage_error("{}: {} has no k to take; write {}({}=8)", attack, task.metric.name(), method, option_name);
  }
  const std::int64_t count = option > 0 ? option : *task.metric.top_count(), features = task.map_schema().layout.features();
  if (count > features) usage_error("{}: the map has {} features; choose {} <= {}", attack, features, option_name, features);
  return count;
}

}  // namespace holdfast::attack
