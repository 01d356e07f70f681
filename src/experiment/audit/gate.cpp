#include "holdfast/experiment/gate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "holdfast/core/error.h"
#include "holdfast/core/method.h"
#include "holdfast/metric/metric.h"

namespace holdfast::experiment {
namespace {

// Numbers that every metric and measure has, and those that take a level.
const std::vector<std::string> kPlainFields{"mean", "low", "high", "median"};
const std::vector<std::string> kLevelFields{"adjusted", "specific", "lift", "effective_sets", "own_advantage", "certified"};

const std::string kDrop = "drop";

bool is_one_of(const std::vector<std::string>& fields, const std::string& field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

std::string without_spaces(const std::string& text) {
  std::string result;
  std::copy_if(text.begin(), text.end(), std::back_inserter(result), [](char letter) { return letter != ' ' && letter != '\t'; });
  return result;
}

// What a number of the metric can be.
std::pair<double, double> range_of(const Metric& metric, const std::string& field) {
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  const auto [low, high] = std::minmax({metric.floor(), metric.perfect()});
  if (field == "lift" || field == kDrop) return {low - high, high - low};
  if (field == "certified") return {low, high};
  if (field == "effective_sets") return {1, kNoEnd};
  return is_one_of(kLevelFields, field) ? std::pair(-kNoEnd, 1.0) : std::pair(low, high);  // 1 at most, and no end below
}

// A limit that no value of the metric reaches would make a gate that says nothing.
void check_limit(const Gate& gate) {
  const std::unique_ptr<Metric> metric = metrics().make(gate.metric);
  if ((gate.field == "effective_sets" || gate.field == "own_advantage") && !metric->top_count())
    usage_error("gate '{}': {} compares whole maps and has no {}; top_k(k=8) has", gate.text, metric->name(), gate.field);
  const auto [low, high] = range_of(*metric, gate.field);
  if (gate.limit >= low && gate.limit <= high) return;
  const std::string range = std::isinf(high)  ? fmt::format("is {} at least", low)
                            : std::isinf(low) ? fmt::format("is {} at most", high)
                                              : fmt::format("lies between {} and {}", low, high);
  usage_error("gate '{}': {} of {} {}, so {} is out of its reach", gate.text, gate.field, metric->name(), range, gate.limit);
}

std::vector<std::size_t> rows_of_measure(const Gate& gate, const Json& rows) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].value("measure", "") == gate.metric) found.push_back(i);
  }
  return found;
}

std::optional<double> number(const Json& value) {
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

}  // namespace

bool Gate::met_by(const std::optional<double>& value) const {
  if (!value || std::isnan(*value)) return false;
  if (comparison == ">=") return *value >= limit;
  if (comparison == ">") return *value > limit;
  if (comparison == "<=") return *value <= limit;
  return *value < limit;
}

Gate parse_gate(const std::string& text, const MeasureName& measure_name) {
  const std::string plain = without_spaces(text);
  const std::size_t at = plain.find_first_of("<>");
  if (at == std::string::npos || at == 0) {
    usage_error("gate '{}' is not of the form METRIC>=NUMBER, for example 'top_k(k=8)>=0.6'", text);
  }
  if (plain[at - 1] == '=') usage_error("gate '{}': write {}= instead of ={}", text, plain[at], plain[at]);
  const bool or_equal = at + 1 < plain.size() && plain[at + 1] == '=';
  Gate gate{.text = text, .metric = plain.substr(0, at), .comparison = plain.substr(at, or_equal ? 2 : 1)};

  // A dot after the options starts a field: top_k(k=8).low
  const std::size_t close = gate.metric.rfind(')');
  const std::size_t dot = gate.metric.find('.', close == std::string::npos ? 0 : close);
  if (dot != std::string::npos) {
    gate.field = gate.metric.substr(dot + 1);
    gate.metric.resize(dot);
    if (!is_one_of(kPlainFields, gate.field) && !is_one_of(kLevelFields, gate.field) && !gate.of_drop()) {
      std::vector<std::string> fields = kPlainFields;
      fields.insert(fields.end(), kLevelFields.begin(), kLevelFields.end());
      fields.push_back(kDrop);
      usage_error("gate '{}': unknown field '{}'{}", text, gate.field, suggestion(gate.field, fields));
    }
  }
  const std::optional<std::string> measure =
      metrics().contains(parse_method_call(gate.metric).name) ? std::nullopt : measure_name(gate.metric);
  gate.of_measure = measure.has_value();
  gate.any_k = !gate.of_measure && !parse_method_call(gate.metric).gives("k") && metrics().make(gate.metric)->top_count();
  gate.metric = measure ? *measure : metrics().make(gate.metric)->name();
  if (gate.of_measure && is_one_of(kLevelFields, gate.field))
    usage_error("gate '{}': a measure has no level, so nothing {}", text, gate.field);

  const std::string limit = plain.substr(at + (or_equal ? 2 : 1));
  const auto [end, status] = std::from_chars(limit.data(), limit.data() + limit.size(), gate.limit);
  if (status != std::errc() || end != limit.data() + limit.size() || !std::isfinite(gate.limit)) {
    usage_error("gate '{}': '{}' is not a number", text, limit);
  }
  if (!gate.of_measure) check_limit(gate);
  return gate;
}

bool Gate::of_drop() const {
  return field == kDrop;
}

std::vector<std::size_t> rows_of(const Gate& gate, const Json& rows) {
  const auto without_k = [](const std::string& name) {
    MethodCall call = parse_method_call(name);
    std::erase_if(call.options, [](const auto& option) { return option.first == "k"; });
    return std::pair(call.name, call.options);
  };
  const auto is_same = [&](const Json& row) { return row.value("metric", "") == gate.metric; };
  std::set<std::string> with_it;  // explainers
  for (const Json& row : rows) {
    if (is_same(row)) with_it.insert(row.value("explainer", ""));
  }
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool has_own_k = gate.any_k && !with_it.contains(rows[i].value("explainer", "")) &&
                           without_k(rows[i].value("metric", "")) == without_k(gate.metric);
    if (is_same(rows[i]) || has_own_k) found.push_back(i);
  }
  return found;
}

void check_gates_have_rows(const std::vector<Gate>& gates, const Json& rows) {
  for (const Gate& gate : gates) {
    if (gate.of_measure || gate.of_drop() || !rows_of(gate, rows).empty()) continue;
    const std::string found = rows.empty() ? "none" : rows[0].value("metric", "");
    usage_error("gate '{}': no row of this run has metric {}; the first has {}", gate.text, gate.metric, found);
  }
}

Json check_gates(const std::vector<Gate>& gates, const Json& attacked, const Json& measured, const Json& drops) {
  Json results = Json::array();
  for (const Gate& gate : gates) {
    const char* kind = gate.of_measure ? "measure" : "row";
    const Json& rows = gate.of_drop() ? drops : gate.of_measure ? measured : attacked;
    Json checked = Json::array();
    bool met = true;
    for (const std::size_t i : gate.of_measure ? rows_of_measure(gate, rows) : rows_of(gate, rows)) {
      const std::optional<double> value = number(rows[i].at(gate.field));
      const bool row_met = gate.met_by(value);
      met = met && row_met;
      const Json place = gate.of_drop() ? rows[i].at(gate.of_measure ? "measured" : "row") : Json(i);
      checked.push_back({{kind, place}, {"value", value ? Json(*value) : Json()}, {"met", row_met}});
    }
    if (checked.empty() && gate.of_drop())
      input_error("gate '{}': the run that is compared with has no {} on the same samples", gate.text, gate.metric);
    if (checked.empty()) {
      const char* name = gate.of_measure ? "measure" : "metric";
      const std::string found = rows.empty() ? "none" : rows[0].value(name, "");
      usage_error("gate '{}': no row of this run has {} {}; the first has {}", gate.text, name, gate.metric, found);
    }
    results.push_back({{"gate", gate.text}, {"limit", gate.limit}, {"met", met}, {"rows", checked}});
  }
  return results;
}

bool all_met(const Json& gates) {
  return std::all_of(gates.begin(), gates.end(), [](const Json& gate) { return gate.at("met").get<bool>(); });
}

}  // namespace holdfast::experiment
