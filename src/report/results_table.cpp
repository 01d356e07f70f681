#include "holdfast/report/text_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <ranges>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/words.h"
#include "holdfast/report/junit.h"
#include "whole_number.h"

namespace holdfast::report {
namespace {

// "0.71", or "-" where undefined.
std::string number(const Json& row, const char* key, int digits = 3) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number()) return "-";
  return fixed(found->get<double>(), digits);
}

std::string interval(const Json& row) {
  if (!row.at("mean").is_number()) return "-";
  if (!row.at("low").is_number()) return number(row, "mean");  // a single sample
  return fmt::format("{} [{}, {}]", number(row, "mean"), number(row, "low"), number(row, "high"));
}

}  // namespace

std::string fixed(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return text;
}

std::string tied_cell(double clean, double perturbed) {
  const auto percent = [](double share) { return fmt::format("{:.0f} %", 100 * share); };
  return percent(clean) == percent(perturbed) ? percent(clean) : percent(clean) + ", " + percent(perturbed);
}

bool has_several_epsilons(const Json& rows) {
  std::map<std::string, Json> first;  // by dataset
  const auto differs = [&](const Json& row) {
    if (!row.contains("threat")) return false;
    const Json& epsilon = row.at("threat").at("epsilon");
    return first.emplace(row.at("dataset"), epsilon).first->second != epsilon;
  };
  return std::any_of(rows.begin(), rows.end(), differs);
}

std::string epsilon_words(const Json& rows, const Json& row) {
  if (!has_several_epsilons(rows)) return "";
  return fmt::format(", epsilon {:g}", row.at("threat").at("epsilon").get<double>());
}

bool is_worse(const Json& row, const Json& other) {
  if (!row.at("mean").is_number()) return false;
  if (!other.at("mean").is_number()) return true;
  const double mine = row.at("mean"), theirs = other.at("mean");
  return row.value("direction", "higher") == "higher" ? mine < theirs : mine > theirs;
}

namespace {

// Measures have no fixed scale: four significant digits.
std::string significant(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() || !found->is_number() || std::isnan(found->get<double>())
             ? "-"
             : fmt::format("{:.4g}", found->get<double>());
}

// Below a thousandth nothing is told apart.
std::string probability(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number()) return "-";
  return found->get<double>() < 0.001 ? "<0.001" : fmt::format("{:.2g}", found->get<double>());
}

std::string significant_interval(const Json& row) {
  const std::string low = significant(row, "low");
  return significant(row, "mean") + (low == "-" ? "" : fmt::format(" [{}, {}]", low, significant(row, "high")));
}

// A column without which two rows would look the same is never left out. Names are asked in this order: where two columns say the
// same, the first one may go.
void keep_what_differs(std::vector<TableColumn>& columns, const std::vector<std::string>& names) {
  std::set<std::string> gone;
  const auto different = [&] {
    std::set<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < columns.front().cells.size(); ++i) {
      std::vector<std::string> cells;
      for (const TableColumn& column : columns) {
        const bool tells = column.drop == 0 || std::ranges::find(names, column.name) != names.end();
        if (tells && !column.is_value && !gone.contains(column.name)) cells.push_back(column.cells[i]);
      }
      rows.insert(std::move(cells));
    }
    return rows.size();
  };
  for (const std::string& name : names) {
    const auto column = std::ranges::find(columns, name, &TableColumn::name);
    if (column == columns.end()) continue;
    const std::size_t with = different();
    gone.insert(name);
    if (different() == with) continue;
    gone.erase(name);
    column->drop = 0;
  }
}

std::string measures_table(const Json& results, std::size_t width) {
  const Json measures = results.value("measures", Json::array());
  if (measures.empty()) return "";
  std::vector<TableColumn> columns{
      {"dataset", {}, 5}, {"model"},        {"explainer", {}, 4}, {"measure"}, {"value [95 %]", {}, 0, true},
      {"median", {}, 6},  {"better", {}, 1}};
  for (const Json& row : measures) {
    const std::vector<std::string> cells{row.at("dataset"),  row.at("model"),           row.at("explainer"),
                                         row.at("measure"),  significant_interval(row), significant(row, "median"),
                                         row.at("direction")};
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  keep_what_differs(columns, {"dataset", "explainer"});
  return "\n" + fitted_table(columns, width);
}

// Of many comparisons the surest are shown; results.json has all.
constexpr std::size_t kComparisonsShown = 20;

std::string comparisons_table(const Json& results, std::size_t width) {
  const Json comparisons = results.value("comparisons", Json::array());
  if (comparisons.empty()) return "";
  std::vector<const Json*> order;
  for (const Json& comparison : comparisons) order.push_back(&comparison);
  if (order.size() > kComparisonsShown) {
    std::stable_sort(order.begin(), order.end(), [](const Json* a, const Json* b) {
      return a->at("corrected").get<double>() < b->at("corrected").get<double>();
    });
    order.resize(kComparisonsShown);
  }
  std::vector<TableColumn> columns{{"dataset", {}, 5},
                                   {"models"},
                                   {"explainer", {}, 4},
                                   {"attack"},
                                   {"epsilon", {}, 3},
                                   {"metric", {}, 2},
                                   {"difference [95 %]", {}, 0, true},
                                   {"p", {}, 6},
                                   {"p, Holm", {}, 0, true}};
  for (const Json* comparison : order) {
    const Json& models = comparison->at("models");
    const bool attacked = comparison->contains("metric");
    const std::string epsilon = comparison->contains("epsilon") ? significant(*comparison, "epsilon") : "-";
    const std::vector<std::string> cells{comparison->at("dataset"),
                                         models.at(0).get<std::string>() + " - " + models.at(1).get<std::string>(),
                                         comparison->at("explainer"),
                                         attacked ? comparison->at("attack").get<std::string>() : "-",
                                         epsilon,
                                         comparison->at(attacked ? "metric" : "measure"),
                                         attacked ? interval(comparison->at("difference"))  // metrics have a scale, measures none
                                                  : significant_interval(comparison->at("difference")),
                                         probability(*comparison, "p_value"),
                                         probability(*comparison, "corrected")};
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  keep_what_differs(columns, {"dataset", "explainer", "epsilon", "metric"});
  const std::string shown =
      order.size() < comparisons.size() ? fmt::format("the {} surest of {}", order.size(), comparisons.size()) : "same samples";
  return fmt::format("\nmodels compared, {}\n{}", shown, fitted_table(columns, width));
}

bool has_components(const Json& row) {
  return !row.value("components", Json::array()).empty();
}

// What tells a row from others, in words.
std::vector<std::string> row_names(const Json& row) {
  return {row.at("model"), row.at("explainer"), row.at("attack"), row.at("metric"),
          fmt::format("{:g}", row.at("threat").at("epsilon").get<double>())};
}

std::string late_line(const Json& row, const std::string& subject) {
  if (!row.at("converged").is_boolean() || !row.contains("restart_gap")) return "";
  return fmt::format("{}restarts within {} of the best, which moved by {} in the last fifth of the work: {}\n", subject,
                     number(row, "restart_gap", 4), number(row, "late_gain", 4),
                     row.at("converged").get<bool>() ? "converged" : "more effort will find more");
}

bool has_sets(const Json& row) {
  return row.value("distinct_top_sets", 0) > 0;
}

// What a value is of is said wherever there are several.
void keep_metrics(std::vector<TableColumn>& columns) {
  TableColumn& metric = *std::ranges::find(columns, "metric", &TableColumn::name);
  if (std::set<std::string>(metric.cells.begin(), metric.cells.end()).size() > 1) metric.drop = 0;
}

// What was attacked. Columns that say nothing about these rows are left out; where there is no room, those with the largest
// number go first.
std::string rows_table(const Json& results, std::size_t width) {
  const auto any = [&](const auto& has) { return std::any_of(results.begin(), results.end(), has); };
  const auto known = [&](const char* key) { return any([&](const Json& row) { return number(row, key) != "-"; }); };
  std::vector<TableColumn> columns;
  const auto add = [&](const char* name, int drop, const auto& cell) {
    TableColumn column{name, {}, drop};
    for (const Json& row : results) column.cells.push_back(cell(row));
    columns.push_back(std::move(column));
  };
  const auto name_of = [](const char* key) { return [key](const Json& row) { return row.at(key).get<std::string>(); }; };
  const auto number_of = [](const char* key, int digits = 3) {
    return [key, digits](const Json& row) { return number(row, key, digits); };
  };
  add("dataset", 16, name_of("dataset"));
  add("model", 0, name_of("model"));
  add("explainer", 15, name_of("explainer"));
  add("attack", 0, name_of("attack"));
  add("metric", 14, name_of("metric"));
  if (has_several_epsilons(results))
    add("epsilon", 0, [](const Json& row) { return fmt::format("{:g}", row.at("threat").at("epsilon").get<double>()); });
  add("value [95 %]", 0, interval);
  columns.back().is_value = true;
  if (known("certified")) add("certified", 5, number_of("certified"));
  if (any([](const Json& row) { return row.value("random", Json()).is_object(); }))
    add("random", 8, [](const Json& row) { return row.at("random").is_object() ? number(row.at("random"), "mean") : "-"; });
  add("chance", 6, [](const Json& row) {
    const std::string chance = number(row, "chance");
    return chance != "-" && !row.value("chance_is_exact", true) ? "~" + chance : chance;
  });
  add("between", 1, number_of("between"));
  if (known("between_same_class")) add("same class", 10, number_of("between_same_class"));
  add("adjusted", 9, number_of("adjusted"));
  add("specific", 7, number_of("specific"));
  add("lift", 3, number_of("lift"));
  if (known("effective_sets")) add("effective sets", 4, number_of("effective_sets", 1));
  if (known("own_advantage")) add("own advantage", 5, number_of("own_advantage"));
  if (any([](const Json& row) { return row.value("robust_and_specific", Json()).is_string(); }))
    add("robust and specific", 2, [](const Json& row) {
      const Json judged = row.value("robust_and_specific", Json());
      return judged.is_string() ? judged.get<std::string>() : "-";
    });
  if (any(has_sets)) {
    add("top sets", 13, [](const Json& row) { return has_sets(row) ? number(row, "distinct_top_sets", 0) : "-"; });
    add("tied", 11,
        [](const Json& row) { return has_sets(row) ? tied_cell(row.at("tied_share"), row.value("tied_perturbed", 0.0)) : "-"; });
  }
  add("flips", 12, [](const Json& row) {
    return row.contains("flips") ? fmt::format("{:.0f} %", 100 * row.at("flips").at("share").get<double>()) : "-";
  });
  keep_what_differs(columns, {"dataset", "explainer"});
  keep_metrics(columns);
  return fitted_table(columns, width);
}

// k of "top_k(k=8)", of the metrics that count features; else 0.
int counted_top(const std::string& metric) {
  const std::size_t at = metric.find("k=");
  const bool counts = metric.starts_with("top_k") || metric.starts_with("lens_precision") || metric.starts_with("lens_recall");
  int count = 0;
  if (counts && at != std::string::npos) std::from_chars(metric.data() + at + 2, metric.data() + metric.size(), count);
  return count;
}

// "l2 <= 0.5, switches <= 1".
std::string threat_words(const Json& threat) {
  const Json switches = threat.value("switches", Json());
  return fmt::format("{} <= {:g}{}", threat.at("norm").get<std::string>(), threat.at("epsilon").get<double>(),
                     switches.is_number() ? fmt::format(", switches <= {}", switches.get<std::int64_t>()) : "");
}

// "plain MLP keeps 2.1 of its top 8 features under gauntlet (saliency, l2 <= 0.5); two different inputs share 5.1".
std::string verdict_sentence(const Json& row) {
  const std::string metric = row.at("metric");
  const int k = counted_top(metric);
  const auto times = [&](const char* key) {
    const double count = k * row.at(key).get<double>();
    return fixed(count, std::abs(count - std::round(count)) < 1e-9 ? 0 : 1);
  };
  const bool between = row.value("between", Json()).is_number();
  const std::string under = fmt::format("under {} ({}, {})", row.at("attack").get<std::string>(),
                                        row.at("explainer").get<std::string>(), threat_words(row.at("threat")));
  const std::string model = row.at("model");
  const Json beaten = row.value("beaten_by", Json());
  const std::string weak =
      beaten.is_string() ? fmt::format("; but {} does more harm: the attack is too weak to judge by", beaten.get<std::string>())
                         : "";
  if (!row.at("mean").is_number()) return fmt::format("{}: {} is not defined {}", model, metric, under);
  if (k == 0)
    return fmt::format("{}: {} is {} {}{}{}", model, metric, number(row, "mean"), under,
                       between ? fmt::format("; two different inputs have {}", number(row, "between")) : "", weak);
  return fmt::format("{} keeps {} of its top {} features {}{}{}", model, times("mean"), k, under,
                     between ? fmt::format("; two different inputs share {}", times("between")) : "", weak);
}

// A sentence for each model: its worst row of the first metric that counts features.
std::string verdict_lines(const Json& rows, std::size_t width) {
  std::vector<std::pair<std::string, const Json*>> worst;  // by dataset and model, in the order of the rows
  std::map<std::string, std::string> metrics;              // by dataset
  for (const Json& row : rows) {
    const std::string metric = row.at("metric");
    const auto [first, is_new] = metrics.emplace(row.at("dataset"), metric);
    if (counted_top(first->second) == 0 && counted_top(metric) > 0) first->second = metric;
  }
  for (const Json& row : rows) {
    if (row.at("metric") != metrics.at(row.at("dataset")) || !row.value("threat", Json()).contains("norm")) continue;
    const std::string key = row.at("dataset").get<std::string>() + "\n" + row.at("model").get<std::string>();
    const auto found = std::find_if(worst.begin(), worst.end(), [&](const auto& entry) { return entry.first == key; });
    if (found == worst.end()) {
      worst.emplace_back(key, &row);
    } else if (row.at("mean").is_number() && !is_worse(*found->second, row)) {
      found->second = &row;  // of equals the last, with the largest epsilon
    }
  }
  std::string text;
  for (const auto& [key, row] : worst) text += wrapped(verdict_sentence(*row), width);
  return text.empty() ? text : "\n" + text;
}

// On a terminal only whether the ensembles are at their end.
std::string ensembles(const Json& results, std::size_t width) {
  if (width == 0) {
    const std::string table = components_table(results.at("rows"));
    return table.empty() ? "" : "\n" + table;
  }
  std::int64_t all = 0, open = 0;
  for (const Json& row : results.at("rows")) {
    if (!has_components(row) || !row.at("converged").is_boolean()) continue;
    ++all;
    open += row.at("converged").get<bool>() ? 0 : 1;
  }
  if (all == 0) return "";
  return open == 0
             ? fmt::format("\nthe attack converged in {}; --wide shows who found what\n", all == 1 ? "its row" : "all its rows")
             : fmt::format("\nmore effort will find more in {} of {}; --wide shows who found what\n", open, counted(all, "row"));
}

// On a terminal a few of many: the report and the runs' files have all.
std::string warning_lines(const std::vector<std::string>& warnings, std::size_t width) {
  constexpr std::size_t kShown = 5;
  const std::size_t shown = width == 0 || warnings.size() <= kShown + 1 ? warnings.size() : kShown;
  std::string text = "\n";
  for (std::size_t i = 0; i < shown; ++i) text += wrapped("warning: " + warnings[i], width);
  if (shown < warnings.size())
    text += fmt::format("warning: and {}; the report has all, and --wide shows them\n",
                        counted(static_cast<std::int64_t>(warnings.size() - shown), "more row"));
  return text;
}

}  // namespace

std::vector<std::string> row_warnings(const Json& results) {
  std::vector<std::string> warnings;
  const Json& rows = results.at("rows");
  const bool one_explainer =
      std::ranges::all_of(rows, [&](const Json& row) { return row.at("explainer") == rows[0].at("explainer"); });
  for (const Json& row : rows) {
    const std::string subject =
        fmt::format("{} on {}, {}{}{}", row.at("attack").get<std::string>(), row.at("model").get<std::string>(),
                    one_explainer ? "" : row.at("explainer").get<std::string>() + ", ", row.at("metric").get<std::string>(),
                    epsilon_words(rows, row));
    const std::int64_t stuck = row.contains("no_gradient") ? whole_number(row.at("no_gradient").at("samples")) : 0;
    if (stuck > 0)
      warnings.push_back(fmt::format("{}: no gradient to follow in {} ({} not finite)", subject, counted(stuck, "sample"),
                                     whole_number(row.at("no_gradient").at("not_finite"))));
    if (row.contains("beaten_by") && !row.at("beaten_by").is_null())
      warnings.push_back(
          fmt::format("{}: {} harms more; do not read this row as robustness", subject, row.at("beaten_by").get<std::string>()));
  }
  return warnings;
}

std::string components_table(const Json& all) {
  Json rows = Json::array();
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows), has_components);
  if (rows.empty()) return "";
  const bool timed = rows.front().at("components").front().contains("seconds");
  std::vector<std::string> header;
  if (rows.size() > 1) header = {"model", "explainer", "attack", "metric", "epsilon"};
  header.insert(header.end(), {"component", "won", "evaluations a sample"});
  if (timed) header.emplace_back("seconds");
  std::vector<std::vector<std::string>> lines;
  std::string late;
  for (const Json& row : rows) {
    const std::vector<std::string> names = rows.size() > 1 ? row_names(row) : std::vector<std::string>{};
    for (const Json& component : row.at("components")) {
      std::vector<std::string> cells = names;
      cells.insert(cells.end(), {component.at("name"), fmt::format("{:.0f} %", 100 * component.at("won").get<double>()),
                                 fmt::format("{:.0f}", component.at("evaluations").get<double>())});
      if (timed) cells.push_back(fmt::format("{:.1f}", component.at("seconds").get<double>()));
      lines.push_back(std::move(cells));
    }
    late += late_line(row, rows.size() > 1 ? fmt::format("{}: ", fmt::join(names, ", ")) : "");
  }
  return text_table(header, lines) + late;
}

std::string results_table(const Json& results, std::size_t width) {
  std::string text = rows_table(results.at("rows"), width);
  text += ensembles(results, width);
  const std::vector<std::string> warnings = row_warnings(results);
  if (!warnings.empty()) text += warning_lines(warnings, width);
  text += measures_table(results, width) + comparisons_table(results, width) + verdict_lines(results.at("rows"), width);
  for (const Json& gate : results.at("gates")) {
    text += fmt::format("{} {}\n", gate.at("met").get<bool>() ? "met    " : "NOT MET", gate.at("gate").get<std::string>());
    for (const Json& row : gate.at("rows")) {
      if (!row.at("met").get<bool>()) text += fmt::format("        {}\n", missed_row(results, gate, row));
    }
  }
  return text;
}

}  // namespace holdfast::report
