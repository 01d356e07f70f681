#include "audit_statistics.h"

#include <algorithm>

#include "holdfast/measure/statistics.h"

namespace holdfast {
namespace {

// What two rows must share to be compared: all that names them but the model.
Json setting_of(const Json& row) {
  Json setting = Json::object();
  for (const char* key : {"dataset", "explainer", "attack", "metric", "measure"}) {
    if (row.contains(key)) setting[key] = row.at(key);
  }
  if (row.contains("threat")) setting["epsilon"] = row.at("threat").at("epsilon");
  return setting;
}

struct Pairing {
  Json names;
  PairedComparison comparison;
};

void add_pairings(std::vector<Pairing>& pairings, const std::vector<RowValues>& rows, std::uint64_t seed) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const Json setting = setting_of(rows[i].row);
      if (rows[i].row.at("model") == rows[j].row.at("model") || setting != setting_of(rows[j].row)) continue;
      Json names = setting;
      names["models"] = {rows[i].row.at("model"), rows[j].row.at("model")};
      pairings.push_back({std::move(names), compare_paired(rows[i].values, rows[j].values, seed)});
    }
  }
}

Json to_json(const Correlation& correlation) {
  return {{"value", correlation.value}, {"low", correlation.low}, {"high", correlation.high}};
}

bool same_samples(const Json& row, const Json& measure) {
  return row.at("dataset") == measure.at("dataset") && row.at("model") == measure.at("model") &&
         (measure.at("explainer") == "-" || measure.at("explainer") == row.at("explainer"));
}

}  // namespace

Json comparisons_json(const std::vector<RowValues>& rows, const std::vector<RowValues>& measures, std::uint64_t seed) {
  std::vector<Pairing> pairings;
  add_pairings(pairings, rows, seed);
  add_pairings(pairings, measures, seed);
  std::vector<PairedComparison> comparisons;
  for (const Pairing& pairing : pairings) comparisons.push_back(pairing.comparison);
  correct(comparisons);
  Json result = Json::array();
  for (std::size_t i = 0; i < pairings.size(); ++i) {
    Json entry = pairings[i].names;
    entry.update(holdfast::to_json(comparisons[i]));
    result.push_back(std::move(entry));
  }
  return result;
}

Json correlations_json(const std::vector<RowValues>& rows, const std::vector<RowValues>& measures, std::uint64_t seed) {
  Json result = Json::array();
  for (const RowValues& row : rows) {
    const auto censored = std::count(row.first_swap.begin(), row.first_swap.end(), -1);
    if (row.first_swap.empty() || censored == static_cast<std::ptrdiff_t>(row.first_swap.size())) continue;  // nothing to rank
    const std::vector<double> times =
        censored_times(row.first_swap, *std::max_element(row.first_swap.begin(), row.first_swap.end()));
    for (const RowValues& measure : measures) {
      if (!same_samples(row.row, measure.row)) continue;
      Json entry = setting_of(row.row);
      entry["model"] = row.row.at("model");
      entry["measure"] = measure.row.at("measure");
      const Correlation spearman = correlate(CorrelationKind::kSpearman, times, measure.values, seed);
      entry["spearman"] = to_json(spearman);
      entry["kendall"] = to_json(correlate(CorrelationKind::kKendall, times, measure.values, seed));
      entry["count"] = spearman.count;
      entry["censored"] = censored;
      result.push_back(std::move(entry));
    }
  }
  return result;
}

}  // namespace holdfast
