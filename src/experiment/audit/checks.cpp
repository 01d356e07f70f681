// What is checked of an audit's samples and gates before any training or attack.
#include <algorithm>

#include <fmt/ranges.h>

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

Gate parse_gate(const std::string& text) {
  return parse_gate(text, [](const std::string& call) -> std::optional<std::string> {
    if (!measures().contains(parse_method_call(call).name)) return std::nullopt;
    return measures().make(call)->name();
  });
}

std::vector<Gate> parse_gates(const std::vector<std::string>& texts) {
  std::vector<Gate> gates;
  for (const std::string& text : texts) gates.push_back(parse_gate(text));
  return gates;
}

namespace {

// Whether rows of this call may have the metric: it is the same, or its k is left to the explainer, which says it with the
// samples.
bool may_answer(const std::string& call, const Gate& gate) {
  if (metrics().make(call)->name() == gate.metric) return true;
  const MethodCall written = parse_method_call(call);
  return !written.gives("k") && written.name == parse_method_call(gate.metric).name;
}

}  // namespace

void check_gates_answered(const std::vector<Gate>& gates, const std::vector<Trial>& trials, bool compared) {
  for (const Gate& gate : gates) {
    if (gate.of_drop() && !compared)
      usage_error("gate '{}': drop is the difference to another run; name it with --compare RUN", gate.text);
    const bool answered = std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
      if (!gate.of_measure)
        return std::ranges::any_of(trial.metrics, [&](const std::string& call) { return may_answer(call, gate); });
      return std::ranges::any_of(trial.measures,
                                 [&](const std::string& call) { return measures().make(call)->name() == gate.metric; });
    });
    if (!answered) {
      std::vector<std::string> known;
      for (const Trial& trial : trials) {
        const std::vector<std::string>& calls = gate.of_measure ? trial.measures : trial.metrics;
        known.insert(known.end(), calls.begin(), calls.end());
      }
      usage_error("gate '{}': no row of this run has {} {}; it has {}", gate.text, gate.of_measure ? "measure" : "metric",
                  gate.metric, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    }
  }
}

void check_gates_answered(const std::vector<Gate>& gates, const AuditPlan& plan) {
  Json rows = Json::array();
  for (const AuditData& data : plan.data) {
    for (const std::string& call : data.trial.explainers) {
      const std::unique_ptr<Explainer> explainer = explainers().make(call);
      for (const std::string& metric : data.trial.metrics)
        rows.push_back(
            {{"explainer", explainer->name()}, {"metric", metric_for(metric, *explainer, *data.samples.schema)->name()}});
    }
  }
  check_gates_have_rows(gates, rows);
}

}  // namespace holdfast::experiment
