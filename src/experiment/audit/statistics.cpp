// Models held against each other on the same samples, and measures beside attacks.
#include "holdfast/measure/statistics.h"

#include <algorithm>

#include "files.h"

namespace holdfast::experiment {
namespace {

// The names of a row of the grid but its model's: what two rows must share to be compared.
Json setting_of(const RowSummary& row) {
  return {{"dataset", row.dataset},
          {"explainer", row.explainer},
          {"attack", row.attack},
          {"metric", row.metric},
          {"epsilon", row.threat.epsilon}};
}
Json setting_of(const MeasureRow& row) {
  return {{"dataset", row.cell.subject.dataset}, {"explainer", row.cell.explainer_name()}, {"measure", row.cell.measure->name()}};
}

const std::string& model_of(const RowSummary& row) {
  return row.model;
}
const std::string& model_of(const MeasureRow& row) {
  return row.cell.subject.model_name;
}

const std::vector<double>& values_of(const RowSummary& row) {
  return row.values;
}
const std::vector<double>& values_of(const MeasureRow& row) {
  return row.measured.values;
}

// Two models in one setting.
struct Pairing {
  Json names;
  PairedComparison comparison;
};

template <class AnyRow>
void add_pairings(std::vector<Pairing>& pairings, const std::vector<AnyRow>& rows, std::uint64_t seed) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      Json names = setting_of(rows[i]);
      if (model_of(rows[i]) == model_of(rows[j]) || names != setting_of(rows[j])) continue;
      names["models"] = {model_of(rows[i]), model_of(rows[j])};
      pairings.push_back({std::move(names), compare_paired(values_of(rows[i]), values_of(rows[j]), seed)});
    }
  }
}

Json correlation_json(const Correlation& correlation) {
  return {{"value", correlation.value}, {"low", correlation.low}, {"high", correlation.high}};
}

bool same_samples(const RowSummary& row, const MeasureRow& measure) {
  return row.dataset == measure.cell.subject.dataset && row.model == measure.cell.subject.model_name &&
         (!measure.cell.measure->uses_explainer() || measure.cell.explainer->name() == row.explainer);
}

}  // namespace

Json comparisons_json(const std::vector<RowSummary>& rows, const std::vector<MeasureRow>& measures, std::uint64_t seed) {
  std::vector<Pairing> pairings;
  add_pairings(pairings, rows, seed);
  add_pairings(pairings, measures, seed);
  std::vector<PairedComparison> comparisons;
  for (const Pairing& pairing : pairings) comparisons.push_back(pairing.comparison);
  correct(comparisons);
  Json result = Json::array();
  for (std::size_t i = 0; i < pairings.size(); ++i) {
    Json entry = pairings[i].names;
    entry.update(to_json(comparisons[i]));
    result.push_back(std::move(entry));
  }
  return result;
}

Json correlations_json(const std::vector<RowSummary>& rows, const std::vector<MeasureRow>& measures, std::uint64_t seed) {
  Json result = Json::array();
  for (const RowSummary& row : rows) {
    const auto censored = std::count(row.first_swap.begin(), row.first_swap.end(), -1);
    if (row.first_swap.empty() || censored == std::ssize(row.first_swap)) continue;  // nothing to rank
    const std::vector<double> times =
        censored_times(row.first_swap, *std::max_element(row.first_swap.begin(), row.first_swap.end()));
    for (const MeasureRow& measure : measures) {
      if (!same_samples(row, measure)) continue;
      Json entry = setting_of(row);
      entry["model"] = row.model;
      entry["measure"] = measure.cell.measure->name();
      const Correlation spearman = correlate(CorrelationKind::kSpearman, times, measure.measured.values, seed);
      entry["spearman"] = correlation_json(spearman);
      entry["kendall"] = correlation_json(correlate(CorrelationKind::kKendall, times, measure.measured.values, seed));
      entry["count"] = spearman.count;
      entry["censored"] = censored;
      result.push_back(std::move(entry));
    }
  }
  return result;
}

}  // namespace holdfast::experiment
