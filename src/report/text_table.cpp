#include "holdfast/report/text_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/words.h"
#include "holdfast/report/junit.h"

namespace holdfast::report {
namespace {

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

bool looks_like_number(const std::string& text) {
  return text.empty() || text == "-" || std::isdigit(static_cast<unsigned char>(text.front())) ||
         (text.front() == '-' && text.size() > 1);
}

std::string pad(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - characters(text), ' ');
  return right ? space + text : text + space;
}

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

std::string text_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  std::vector<bool> right;
  for (std::size_t column = 0; column < header.size(); ++column) {
    width.push_back(characters(header[column]));
    bool numbers = !rows.empty();
    for (const std::vector<std::string>& row : rows) {
      width[column] = std::max(width[column], characters(row[column]));
      numbers = numbers && looks_like_number(row[column]);
    }
    right.push_back(numbers);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string result;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) result += "  ";
      result += pad(cells[column], width[column], right[column]);
    }
    result.erase(result.find_last_not_of(' ') + 1);
    text += result + '\n';
  };
  line(header);
  std::vector<std::string> rule;
  for (const std::size_t columns : width) {
    std::string dashes;
    for (std::size_t i = 0; i < columns; ++i) dashes += "─";
    rule.push_back(dashes);
  }
  line(rule);
  for (const std::vector<std::string>& row : rows) line(row);
  return text;
}

namespace {

// Measures have no fixed scale: four significant digits.
std::string significant(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() || !found->is_number() || std::isnan(found->get<double>())
             ? "-"
             : fmt::format("{:.4g}", found->get<double>());
}

std::string significant_interval(const Json& row) {
  const std::string low = significant(row, "low");
  return significant(row, "mean") + (low == "-" ? "" : fmt::format(" [{}, {}]", low, significant(row, "high")));
}

std::string measures_table(const Json& results) {
  const Json measures = results.value("measures", Json::array());
  if (measures.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : measures) {
    rows.push_back({row.at("dataset"), row.at("model"), row.at("explainer"), row.at("measure"), significant_interval(row),
                    significant(row, "median"), row.at("direction")});
  }
  return "\n" + text_table({"dataset", "model", "explainer", "measure", "value [95 %]", "median", "better"}, rows);
}

// Of many comparisons the surest are shown; results.json has all.
constexpr std::size_t kComparisonsShown = 20;

std::string comparisons_table(const Json& results) {
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
  std::vector<std::vector<std::string>> rows;
  for (const Json* comparison : order) {
    const Json& models = comparison->at("models");
    const bool attacked = comparison->contains("metric");
    rows.push_back({comparison->at("dataset"), models.at(0).get<std::string>() + " - " + models.at(1).get<std::string>(),
                    attacked ? comparison->at("attack") : comparison->at("explainer"),
                    comparison->at(attacked ? "metric" : "measure"), significant_interval(comparison->at("difference")),
                    significant(*comparison, "p_value"), significant(*comparison, "corrected")});
  }
  const std::string shown =
      rows.size() < comparisons.size() ? fmt::format("the {} surest of {}", rows.size(), comparisons.size()) : "same samples";
  return fmt::format("\nmodels compared, {}\n{}", shown,
                     text_table({"dataset", "models", "attack", "metric", "difference [95 %]", "p", "p, Holm"}, rows));
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
  if (!row.at("converged").is_boolean()) return "";
  return fmt::format("{}moved by {} in the last fifth of the work: {}\n", subject, number(row, "late_gain", 4),
                     row.at("converged").get<bool>() ? "converged" : "more effort will find more");
}

bool has_sets(const Json& row) {
  return row.value("distinct_top_sets", 0) > 0;
}

// What was attacked. Columns that say nothing about these rows are left out.
std::string rows_table(const Json& results) {
  const auto any = [&](const auto& has) { return std::any_of(results.begin(), results.end(), has); };
  const bool classes = any([](const Json& row) { return number(row, "between_same_class") != "-"; });
  const bool sets = any(has_sets);
  const bool effective = any([](const Json& row) { return number(row, "effective_sets") != "-"; });
  const bool own = any([](const Json& row) { return number(row, "own_advantage") != "-"; });
  const bool judged = any([](const Json& row) { return row.value("robust_and_specific", Json()).is_string(); });
  const bool random = any([](const Json& row) { return row.value("random", Json()).is_object(); });
  const bool several = has_several_epsilons(results);
  std::vector<std::string> header{"dataset", "model", "explainer", "attack", "metric"};
  if (several) header.emplace_back("epsilon");
  header.emplace_back("value [95 %]");
  if (random) header.emplace_back("random");
  header.insert(header.end(), {"chance", "between"});
  if (classes) header.emplace_back("same class");
  header.insert(header.end(), {"adjusted", "specific", "lift"});
  if (effective) header.emplace_back("effective sets");
  if (own) header.emplace_back("own advantage");
  if (judged) header.emplace_back("robust and specific");
  if (sets) header.insert(header.end(), {"top sets", "tied"});
  header.emplace_back("flips");
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : results) {
    const std::string chance = number(row, "chance");
    std::vector<std::string> cells{row.at("dataset"), row.at("model"), row.at("explainer"), row.at("attack"), row.at("metric")};
    if (several) cells.push_back(fmt::format("{:g}", row.at("threat").at("epsilon").get<double>()));
    cells.push_back(interval(row));
    if (random) cells.push_back(row.at("random").is_object() ? number(row.at("random"), "mean") : "-");
    cells.push_back(chance != "-" && !row.value("chance_is_exact", true) ? "~" + chance : chance);
    cells.push_back(number(row, "between"));
    if (classes) cells.push_back(number(row, "between_same_class"));
    cells.insert(cells.end(), {number(row, "adjusted"), number(row, "specific"), number(row, "lift")});
    if (effective) cells.push_back(number(row, "effective_sets", 1));
    if (own) cells.push_back(number(row, "own_advantage"));
    if (judged) cells.push_back(row.value("robust_and_specific", Json()).is_string() ? row.at("robust_and_specific") : "-");
    if (sets) cells.push_back(has_sets(row) ? number(row, "distinct_top_sets", 0) : "-");
    if (sets) cells.push_back(has_sets(row) ? tied_cell(row.at("tied_share"), row.value("tied_perturbed", 0.0)) : "-");
    cells.push_back(row.contains("flips") ? fmt::format("{:.0f} %", 100 * row.at("flips").at("share").get<double>()) : "-");
    rows.push_back(std::move(cells));
  }
  return text_table(header, rows);
}

std::string ensembles(const Json& results) {
  const std::string table = components_table(results.at("rows"));
  return table.empty() ? "" : "\n" + table;
}

}  // namespace

std::vector<std::string> row_warnings(const Json& results) {
  std::vector<std::string> warnings;
  for (const Json& row : results.at("rows")) {
    const std::string subject =
        fmt::format("{} on {}, {}{}", row.at("attack").get<std::string>(), row.at("model").get<std::string>(),
                    row.at("metric").get<std::string>(), epsilon_words(results.at("rows"), row));
    const std::int64_t stuck = row.contains("no_gradient") ? row.at("no_gradient").at("samples").get<std::int64_t>() : 0;
    if (stuck > 0)
      warnings.push_back(fmt::format("{}: no gradient to follow in {} ({} not finite)", subject, counted(stuck, "sample"),
                                     row.at("no_gradient").at("not_finite").get<std::int64_t>()));
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

std::string results_table(const Json& results) {
  std::string text = rows_table(results.at("rows"));
  text += ensembles(results);
  const std::vector<std::string> warnings = row_warnings(results);
  if (!warnings.empty()) text += fmt::format("\nwarning: {}\n", fmt::join(warnings, "\nwarning: "));
  text += measures_table(results) + comparisons_table(results);
  for (const Json& gate : results.at("gates")) {
    text += fmt::format("{} {}\n", gate.at("met").get<bool>() ? "met    " : "NOT MET", gate.at("gate").get<std::string>());
    for (const Json& row : gate.at("rows")) {
      if (!row.at("met").get<bool>()) text += fmt::format("        {}\n", missed_row(results, gate, row));
    }
  }
  return text;
}

}  // namespace holdfast::report
