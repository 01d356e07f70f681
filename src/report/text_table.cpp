#include "holdfast/report/text_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/report/junit.h"

namespace holdfast {
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

// Who won in an ensemble, a line for each of its rows.
std::string components_lines(const Json& results) {
  std::string text;
  for (const Json& row : results.at("rows")) {
    const Json components = row.value("components", Json::array());
    if (components.empty()) continue;
    std::vector<std::string> parts;
    for (const Json& component : components) {
      parts.push_back(fmt::format("{} {:.0f} % ({:.0f})", component.at("name").get<std::string>(),
                                  100 * component.at("won").get<double>(), component.at("evaluations").get<double>()));
    }
    text += fmt::format("{}, {}, {}: {}; moved by {} in the last fifth\n", row.at("model").get<std::string>(),
                        row.at("explainer").get<std::string>(), row.at("metric").get<std::string>(), fmt::join(parts, ", "),
                        number(row, "late_gain", 4));
  }
  return text.empty() ? "" : "\nsamples won by each component (evaluations a sample)\n" + text;
}

bool has_sets(const Json& row) {
  return row.value("distinct_top_sets", 0) > 0;
}

// What was attacked. Columns that say nothing about these rows are left out.
std::string rows_table(const Json& results) {
  const auto any = [&](const auto& has) { return std::any_of(results.begin(), results.end(), has); };
  const bool classes = any([](const Json& row) { return number(row, "between_same_class") != "-"; });
  const bool sets = any(has_sets);
  std::vector<std::string> header{"dataset", "model", "explainer", "attack", "metric", "value [95 %]", "chance", "between"};
  if (classes) header.emplace_back("same class");
  header.insert(header.end(), {"adjusted", "specific"});
  if (sets) header.insert(header.end(), {"top sets", "tied"});
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : results) {
    const std::string chance = number(row, "chance");
    std::vector<std::string> cells{row.at("dataset"),
                                   row.at("model"),
                                   row.at("explainer"),
                                   row.at("attack"),
                                   row.at("metric"),
                                   interval(row),
                                   chance != "-" && !row.value("chance_is_exact", true) ? "~" + chance : chance,
                                   number(row, "between")};
    if (classes) cells.push_back(number(row, "between_same_class"));
    cells.insert(cells.end(), {number(row, "adjusted"), number(row, "specific")});
    if (sets) cells.push_back(has_sets(row) ? number(row, "distinct_top_sets", 0) : "-");
    if (sets) cells.push_back(has_sets(row) ? tied_cell(row.at("tied_share"), row.value("tied_perturbed", 0.0)) : "-");
    rows.push_back(std::move(cells));
  }
  return text_table(header, rows);
}

std::string beaten_lines(const Json& results) {
  std::string text;
  for (const Json& row : results.at("rows")) {
    if (!row.contains("beaten_by") || row.at("beaten_by").is_null()) continue;
    text += fmt::format("warning: {} on {}, {}: {} harms more; do not read this row as robustness\n",
                        row.at("attack").get<std::string>(), row.at("model").get<std::string>(),
                        row.at("metric").get<std::string>(), row.at("beaten_by").get<std::string>());
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string results_table(const Json& results) {
  std::string text = rows_table(results.at("rows"));
  text += components_lines(results) + beaten_lines(results) + measures_table(results) + comparisons_table(results);
  for (const Json& gate : results.at("gates")) {
    text += fmt::format("{} {}\n", gate.at("met").get<bool>() ? "met    " : "NOT MET", gate.at("gate").get<std::string>());
    for (const Json& row : gate.at("rows")) {
      if (!row.at("met").get<bool>()) text += fmt::format("        {}\n", missed_row(results, gate, row));
    }
  }
  return text;
}

}  // namespace holdfast
