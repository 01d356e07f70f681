#include "audit_grid.h"

#include <algorithm>

namespace holdfast {
namespace {

// Canonical calls, each once: top_k and top_k(k=8) are one metric.
template <class Product>
std::vector<std::string> distinct(const Registry<Product>& registry, const std::vector<std::string>& calls) {
  std::vector<std::string> names;
  for (const std::string& call : calls) {
    std::string name = registry.make(call)->name();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

CellTask GridRow::task(std::uint64_t seed, const at::Tensor& start) const {
  return {.model = *subject.model,
          .explainer = *explainer,
          .attack = *attack,
          .metric = *metric,
          .threat = threat,
          .schema = data.schema,
          .inputs = data.inputs,
          .targets = data.targets,
          .sample_ids = data.ids,
          .seed = seed,
          .baseline = data.baseline,
          .background = data.background,
          .start = start,
          .select = data.trial.select};
}

std::vector<GridRow> make_grid(const AuditPlan& plan) {
  std::vector<GridRow> grid;
  for (const AuditModel& subject : plan.models) {
    const AuditData& data = plan.data.at(subject.data);
    const Trial& trial = data.trial;
    for (const std::string& explainer : distinct(explainers(), trial.explainers)) {
      for (const std::string& metric : distinct(metrics(), trial.metrics)) {
        for (const std::string& attack : distinct(attacks(), trial.attacks)) {
          for (const double epsilon : trial.epsilons) {
            grid.push_back({subject, data, explainers().make(explainer), attacks().make(attack), metrics().make(metric),
                            ThreatModel::make(trial.norm, epsilon, trial.box, data.schema, trial.threat),
                            /*goes_on=*/epsilon != trial.epsilons.front()});
            check_cell(grid.back().task(plan.seed));
          }
        }
      }
    }
  }
  return grid;
}

}  // namespace holdfast
