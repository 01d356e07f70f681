#include "holdfast/attack/proposals.h"

#include "check.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "ledger.h"

namespace holdfast::attack {
namespace {

// The allowed points that stand for what was proposed; elements that are not finite stay where they were.
at::Tensor allowed(const at::Tensor& proposed, const AttackTask& task, const std::string& attack) {
  const at::Tensor& clean = task.samples.inputs;
  if (proposed.sizes() != clean.sizes()) {
    input_error("{}: it proposed points of shape {}; one for each sample is expected, {}", attack,
                holdfast::to_string(proposed.sizes().vec()), holdfast::to_string(clean.sizes().vec()));
  }
  const at::Tensor points = proposed.detach().to(clean.options());
  const at::Tensor finite = at::where(at::isfinite(points), points, clean);
  return task.threat.admit(task.threat.project(finite, clean), clean);
}

}  // namespace

void ProposingAttack::check(const AttackTask& task) const {
  check_task(task);
}

AttackResult ProposingAttack::run(const AttackTask& task) const {
  check(task);
  const std::int64_t cost = task.explainer.evaluations(*task.samples.schema);
  Ledger ledger(task, task.explainer.attribute(explain_at(task, task.samples.inputs)), selects(task.select));
  ledger.charge(cost);
  look_at_start(task, ledger, name());
  const std::unique_ptr<Proposals> proposals = start(task);
  std::vector<double> values;
  while (!ledger.finished()) {
    throw_if_interrupted();
    const std::optional<at::Tensor> proposed = proposals->next(values);
    ledger.charge(proposals->take_evaluations());
    if (!proposed) break;
    const at::Tensor points = allowed(*proposed, task, name());
    ledger.charge(cost);
    ledger.record(points, task.explainer.attribute(explain_at(task, points)));
    values = ledger.values();
  }
  return ledger.finish();
}

}  // namespace holdfast::attack
