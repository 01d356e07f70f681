// What is checked of an audit's samples and gates before any training or attack.
#include <algorithm>

#include "holdfast/core/large_tensor.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/measure/measure.h"

namespace holdfast::experiment {

void exclude_non_finite(AuditData& data) {
  at::Tensor finite = at::empty({data.samples.count()}, at::kBool);
  for_each_part(data.samples.inputs, [&](std::int64_t begin, const at::Tensor& part) {
    finite.slice(0, begin, begin + part.size(0)).copy_(at::isfinite(part).flatten(1).all(1));
  });
  const std::int64_t bad = data.samples.count() - finite.sum().item<std::int64_t>();
  data.excluded.emplace_back("not finite", bad);
  if (bad == 0) return;
  data.samples = data.samples.select(finite.nonzero().squeeze(1));
  log_warning("{}: left out are {} with a value that is not finite", data.name, counted(bad, "sample"));
  if (data.samples.count() == 0) input_error("{}: no sample is finite", data.name);
}

void check_gates_answered(const std::vector<Gate>& gates, const std::vector<Trial>& trials, bool compared) {
  for (const Gate& gate : gates) {
    if (gate.of_drop() && !compared)
      usage_error("gate '{}': drop is the difference to another run; name it with --compare RUN", gate.text);
    const bool answered = std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
      const auto asked = [&](const auto& registry, const std::vector<std::string>& calls) {
        return std::any_of(calls.begin(), calls.end(),
                           [&](const std::string& call) { return registry.make(call)->name() == gate.metric; });
      };
      return gate.of_measure ? asked(measures(), trial.measures) : asked(metrics(), trial.metrics);
    });
    if (!answered) {
      usage_error("gate '{}': no row of this run has {} {}", gate.text, gate.of_measure ? "measure" : "metric", gate.metric);
    }
  }
}

}  // namespace holdfast::experiment
