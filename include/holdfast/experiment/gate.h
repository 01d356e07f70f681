// Gates: what must hold for a build to pass. `top_k(k=8)>=0.6` compares the mean of every row with that metric;
// `top_k(k=8).low>=0.5` another of its numbers: mean, low, high, median, adjusted, specific, lift, effective_sets, own_advantage,
// certified.
// `top_k(k=8).drop<=0.05` compares how much worse a row is than in another run, on the same samples (compare_runs.h).
// `top_k>=0.6`, without a k, is about the k that the run took from an explainer (valid_effect), and else about the default.
// `thickness(k=8)>=0.9` does the same for a measure, which has only the first four and drop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::experiment {

struct Gate {
  std::string text;    // as it was written
  std::string metric;  // canonical name, of a metric or a measure
  bool of_measure = false;
  bool any_k = false;  // the metric has a k and none was written: it is the explainer's where that has one of its own
  std::string field = "mean";
  std::string comparison;  // ">=", ">", "<=", "<"
  double limit = 0;

  // A value that is undefined does not meet any gate.
  bool met_by(const std::optional<double>& value) const;
  // Whether it is about the difference to another run.
  bool of_drop() const;
};

// Throws kUsage: an unknown name or field, no comparison, a limit that is not a number.
Gate parse_gate(const std::string& text);
std::vector<Gate> parse_gates(const std::vector<std::string>& texts);
// The same for other measures than those there are, without torch: the canonical name of a call, or nothing if it is no measure.
using MeasureName = std::function<std::optional<std::string>(const std::string& call)>;
Gate parse_gate(const std::string& text, const MeasureName& measure_name);

// Holds every gate against the "rows" of results.json, or against its "measures": an array of
// {"gate", "met", "rows": [{"row", "value", "met"}]}, with "measure" in place of "row" for measures. Some row must answer each
// gate: run_audit makes sure of it before any work. `drops`: of drops_against, for gates on the difference to another run.
Json check_gates(const std::vector<Gate>& gates, const Json& rows, const Json& measures = Json::array(),
                 const Json& drops = Json::array());
bool all_met(const Json& gates);

// Positions of the rows that a gate on a metric is about: {"explainer", "metric"} are read.
std::vector<std::size_t> rows_of(const Gate& gate, const Json& rows);
// Throws kUsage for a gate on a metric that no row has.
void check_gates_have_rows(const std::vector<Gate>& gates, const Json& rows);

}  // namespace holdfast::experiment
