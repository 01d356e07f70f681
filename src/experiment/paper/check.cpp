// What is wrong with an experiment's file, found before any work. Every text is filled and every call is parsed, for each
// setting.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/number.h"
#include "holdfast/train/objective.h"
#include "networks.h"
#include "run.h"

namespace holdfast::experiment::paper {
namespace {

using Texts = std::vector<std::string>;

// Runs a check; a mistake that it finds is told with its place.
template <class Check>
void at(const std::string& place, Check check) {
  try {
    check();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", place, error.what()));
  }
}

void check_word(const std::string& word, const Texts& known, const std::string& what) {
  if (std::ranges::find(known, word) == known.end()) usage_error("{} '{}' is not known{}", what, word, suggestion(word, known));
}

template <class Item>
Texts names_of(const std::vector<Item>& items, std::string Item::*name = &Item::name) {
  Texts names;
  for (const Item& item : items) names.push_back(item.*name);
  return names;
}

void check_differ(const Texts& names, const std::string& what) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) usage_error("a {} has no name", what);
    if (!seen.insert(name).second) usage_error("there are two {}s '{}'", what, name);
  }
}

Texts known_words(const Words& words) {
  Texts names;
  for (const auto& [name, word] : words) names.push_back(name);
  return names;
}

void check_setting(const Setting& setting) {
  check_word(setting.kind, {"table", "image", "graph"}, "kind");
  check_word(setting.members_are, {"seeds", "folds"}, "members_are");
  check_word(setting.weights, {"chosen", "first"}, "weights");
  check_word(setting.samples_are, {"first", "spread", "right", "classes"}, "samples_are");
  check_word(setting.explained, {"predictions", "labels"}, "explained");
  check_word(setting.box, {"", "unit"}, "box");
  parse_norm(setting.norm);
  if (setting.data.empty()) usage_error("data is missing: the dataset's call");
  datasets().options(setting.data);
  if (setting.model.empty()) architectures().options(setting.fill(setting.architecture));
  if (!(setting.epsilon > 0)) usage_error("epsilon = {} must be above 0", setting.epsilon);
  for (const auto& [name, number] : {std::pair("samples", setting.samples), {"members", setting.members}, {"k", setting.k}}) {
    if (number < 1) usage_error("{} = {} must be at least 1", name, number);
  }
  for (const auto& [name, number] : {std::pair("batch_size", setting.batch_size),
                                     {"epochs", setting.epochs},
                                     {"training_samples", setting.training_samples}}) {
    if (number < 0) usage_error("{} = {} must not be negative", name, number);
  }
}

class PlanCheck {
 public:
  PlanCheck(const Plan& plan, const Paper& paper, const Words& options) : plan_(plan), paper_(paper), options_(options) {}

  void run() const {
    check_names();
    for (const Setting& setting : plan_.settings) {
      at(fmt::format("setting '{}'", setting.name), [&] {
        check_setting(setting);
        check_trainings(setting);
        check_rows(setting);
      });
    }
    for (const TablePlan& table : plan_.tables) at(fmt::format("table '{}'", table.name), [&] { check_table(table); });
    for (const Claim& claim : plan_.claims) at(fmt::format("claim '{}'", claim.id), [&] { check_claim(claim); });
    for (const FigurePlan& figure : plan_.figures) at(fmt::format("figure '{}'", figure.name), [&] { check_figure(figure); });
    for (const Note& note : plan_.notes) {
      at("note", [&] { check_selectors(note.settings); });
      for (const Setting& setting : plan_.settings) {
        if (setting.is_one_of(note.settings)) at("note", [&] { setting.fill(note.text); });
      }
    }
  }

 private:
  void check_selectors(const Texts& selectors) const {
    for (const std::string& one : selectors) {
      const bool is_known = std::ranges::any_of(plan_.all_settings, [&](const Setting& s) { return s.is_one_of({one}); });
      if (is_known) continue;
      const Texts all = names_of(plan_.all_settings);  // some are bases too
      const std::set<std::string> different(all.begin(), all.end());
      usage_error("settings: '{}' is no setting, dataset, encoding, kind or tag{}", one,
                  suggestion(one, {different.begin(), different.end()}));
    }
  }

  void check_choice(const std::string& choice) const {
    if (!choice.empty()) check_word(choice, names_of(paper_.choices), "choice");
  }

  void check_names() const {
    check_differ(names_of(plan_.tables), "table");
    check_differ(names_of(plan_.figures), "figure");
    check_differ(names_of(plan_.claims, &Claim::id), "claim");
    check_differ(names_of(plan_.settings), "setting");
    check_differ(names_of(plan_.methods), "method");
    check_differ(names_of(plan_.explainers), "explainer");
    check_differ(names_of(plan_.attacks), "attack");
    check_differ(names_of(plan_.radii), "radius");
    check_selectors(plan_.selectors);
    check_choice(plan_.choice);
    if (plan_.analysis.empty()) return;
    Texts known;
    for (const auto& [name, analysis] : analyses_of(plan_.paper)) known.push_back(name);
    check_word(plan_.analysis, known, "analysis");
  }

  void check_trainings(const Setting& setting) const {
    if (!setting.model.empty()) return;
    for (const Method& method : methods_for(setting, plan_.methods)) {
      if (!method.architecture.empty()) architectures().options(method.architecture);
      Texts grid = setting.is_table() ? method.grid : method.other_grid;
      if (grid.empty()) grid.emplace_back();
      at(fmt::format("method '{}'", method.name), [&] {
        for (const std::string& weights : grid) recipes().options(recipe_call(method, setting, weights));
      });
    }
  }

  // The calls of explainers, attacks and radii that rows are made for.
  void check_rows(const Setting& setting) const {
    explainers().options(call(setting.explainer, setting));
    for (const NamedCall& one : plan_.explainers) {
      at(fmt::format("explainer '{}'", one.name), [&] {
        if (!one.call.empty()) explainers().options(call(one.call, setting));
        for (const std::string& attack : one.attacks) check_word(attack, names_of(plan_.attacks), "attack");
      });
    }
    for (const NamedCall& one : plan_.attacks) at(fmt::format("attack '{}'", one.name), [&] { check_attack(one.call, setting); });
    for (const NamedCall& one : plan_.radii) {
      const std::optional<double> radius = parse_quotient(one.call);
      if (!radius || !(*radius > 0)) usage_error("radius '{}': call = \"{}\" is not a number above 0", one.name, one.call);
    }
    for (const std::string& metric : plan_.metrics) {
      const auto [only, text] = metric.find(": ") == std::string::npos ? std::pair(std::string(), metric) : named(metric);
      if (applies(only, setting)) metrics().options(setting.fill(text));
    }
  }

  void check_attack(const std::string& text, const Setting& setting) const {
    for (const std::string& one : split(text, " + ")) attacks().options(call(one, setting));
  }

  std::string call(const std::string& text, const Setting& setting) const {
    Words words = setting.words();
    words.insert(options_.begin(), options_.end());
    return fill(paper_.call(text), words);
  }

  // The words that rows of a setting are told by, with those that a place adds.
  Words words_of(const Setting& setting, const Words& more = {}) const {
    Words words = row_words(setting, plan_.methods.empty() ? Method{} : plan_.methods.front(), "", {}, {}, {});
    words["strong_weights"] = "";
    words.insert(more.begin(), more.end());
    return words;
  }

  bool has(const TablePlan& table, const Setting& setting) const {
    return table.settings.empty() || setting.is_one_of(table.settings);
  }

  void check_table(const TablePlan& table) const {
    check_differ(names_of(table.columns), "column");
    fill(table.caption, options_);
    check_selectors(table.settings);
    for (const std::string& method : table.methods) check_word(method, names_of(plan_.all_methods), "method");
    if (table.is_analysed) return;
    if (table.columns.empty()) usage_error("it has no column");
    for (const Setting& setting : plan_.settings) {
      if (!has(table, setting)) continue;
      const Words words = words_of(setting);
      for (const std::string& key : table.keys) fill(named(key).second, words);
      fill(table.published_method, words);
      fill(table.published_dataset, words);
    }
    for (const ColumnPlan& column : table.columns)
      at(fmt::format("column '{}'", column.name), [&] { check_column(column, table); });
  }

  void check_column(const ColumnPlan& column, const TablePlan& table) const {
    const int sources = !column.metric.empty() + !column.measure.empty() + !column.of.empty() + !column.from.empty();
    if (sources != 1) usage_error("give one of metric, measure, of and from");
    if (!column.of.empty()) check_word(column.of, {"AUC", "accuracy", "robust accuracy", "gradient evaluations"}, "of");
    check_word(column.select, {"worst", "last"}, "select");
    check_word(column.aim, {"", "own"}, "aim");
    check_word(column.rows, {"", "valid"}, "rows");
    for (const std::string& level : column.levels) check_word(level, ColumnPlan{}.levels, "level");
    check_what(column, table);
    for (const Setting& setting : plan_.settings) {
      if (has(table, setting)) at(fmt::format("setting '{}'", setting.name), [&] { check_cells(column, setting); });
    }
  }

  void check_what(const ColumnPlan& column, const TablePlan& table) const {
    if (column.from.empty()) {
      if (column.what.empty() || column.what == "adjusted") return;
      const auto limit = column.what.starts_with("below ") ? parse_quotient(column.what.substr(6)) : std::nullopt;
      if (!limit || column.metric.empty())
        usage_error("what = \"{}\" of a metric must be \"adjusted\" or \"below NUMBER\"", column.what);
      return;
    }
    check_word(column.what,
               {"flipped", "AUC before", "AUC after", "sensitivity", "random points", "distinct top sets", "tied", "defined",
                "undefined", "judged", "misclassified"},
               "what");
    check_word(column.from, names_of(table.columns), "from: column");
    const auto place = [&](const std::string& name) { return std::ranges::find(table.columns, name, &ColumnPlan::name); };
    if (place(column.from) >= place(column.name)) usage_error("from = \"{}\" must be a column before it", column.from);
    const ColumnPlan& from = *place(column.from);
    if (from.metric.empty()) usage_error("from = \"{}\" must be a column with a metric", column.from);
    const std::string& aim = plan_.aim.empty() ? plan_.metrics.front() : plan_.aim;
    if (column.what == "random points" && from.aim != "own" && paper_.call(from.metric) != aim)
      usage_error("random points are judged by what the attack lowers, {}; give column '{}' aim = \"own\"", aim, from.name);
  }

  void check_cells(const ColumnPlan& column, const Setting& setting) const {
    const Words words = words_of(setting);
    if (!column.only.empty() && column.only != "softplus" && !words.contains(column.only))
      check_word(column.only, {"table", "image", "graph", "softplus"}, "only");
    const bool is_for_any =
        std::ranges::any_of(plan_.methods, [&](const Method& method) { return applies(column.only, setting, method); });
    if (!is_for_any && !applies(column.only, setting)) return;
    check_choice(setting.fill(column.choice));
    if (!column.samples.empty()) {
      const std::string text = setting.fill(column.samples);
      const std::optional<double> number = parse_quotient(text);
      if (!number || *number < 0 || *number != static_cast<double>(static_cast<std::int64_t>(*number)))
        usage_error("samples = \"{}\" is not a number of samples", text);
    }
    if (!column.metric.empty()) metrics().options(call(column.metric, setting));
    if (!column.measure.empty()) measures().options(call(column.measure, setting));
    if (!column.explainer.empty()) explainers().options(call(column.explainer, setting));
    if (column.metric.empty()) return;
    if (column.attack.empty() && plan_.attacks.empty()) usage_error("a metric needs an attack");
    if (!column.attack.empty()) check_attack(column.attack, setting);
  }

  const TablePlan& table_with(const std::string& name, const Texts& columns) const {
    check_word(name, names_of(plan_.tables), "table");
    const TablePlan& table = *std::ranges::find(plan_.tables, name, &TablePlan::name);
    for (const std::string& column : columns)
      check_word(column, names_of(table.columns), fmt::format("table '{}': column", name));
    return table;
  }

  // "attack=top_t|mass_center"
  void check_conditions(const Texts& conditions, const Words& words) const {
    for (const std::string& condition : conditions) {
      const std::size_t equals = condition.find('=');
      if (equals == std::string::npos) usage_error("'{}' must be word=value", condition);
      const std::string word = condition.substr(0, equals);
      check_word(word, known_words(words), fmt::format("'{}': word", condition));
      if (word != "method") continue;
      for (const std::string& value : split(condition.substr(equals + 1), "|"))
        check_word(value, names_of(plan_.all_methods), fmt::format("'{}': method", condition));
    }
  }

  void check_claim(const Claim& claim) const {
    if (claim.columns.empty()) {  // judged by the analysis
      if (plan_.analysis.empty()) usage_error("it has neither columns of a table nor an analysis that judges it");
      return;
    }
    table_with(claim.table, claim.columns);
    if (!claim.minus_column.empty()) table_with(claim.table, {claim.minus_column});
    for (const Setting& setting : plan_.settings) {
      const Words words = words_of(setting, {{"column", ""}, {"metric", ""}});
      check_conditions(claim.rows, words);
      fill(claim.case_name, words);
    }
    const Words told_apart{{"name", ""}, {"method", ""}, {"explainer", ""}, {"attack", ""}, {"radius", ""}};
    check_conditions(claim.minus, told_apart);
    if (!plan_.analysis.empty()) return;  // which may judge it with words of its own
    Words words{{"datasets", ""}, {"accuracies", ""}, {"by_column", ""}};
    words.insert(options_.begin(), options_.end());
    for (const std::string& text : {claim.says, claim.what, claim.also}) fill(text, words);
  }

  void check_figure(const FigurePlan& figure) const {
    fill(figure.caption, options_);
    if (!figure.spec.empty()) carried_file(plan_.paper + "/" + figure.spec);
    Texts columns;  // a table may have a part of them
    for (const std::string& table : figure.tables) {
      for (std::string& name : names_of(table_with(table, {}).columns)) columns.push_back(std::move(name));
    }
    for (const std::string& column : figure.columns) check_word(column, columns, "column");
    if (figure.is_analysed) return;
    if (figure.spec.empty()) usage_error("spec is missing: a Vega-Lite file");
    for (const Setting& setting : plan_.settings) {
      const Words words = words_of(setting, {{"column", ""}, {"table", ""}, {"column_number", ""}});
      check_conditions(figure.rows, words);
      for (const std::string& field : figure.fields) fill(named(field).second, words);
    }
  }

  const Plan& plan_;
  const Paper& paper_;
  const Words& options_;
};

}  // namespace

const std::map<std::string, Analysis>& analyses_of(const std::string& paper) {
  return paper == "r2et" ? r2et_analyses() : lens_analyses();
}

void check_plan(const Plan& plan, const Paper& paper, const Words& options) {
  PlanCheck(plan, paper, options).run();
}

}  // namespace holdfast::experiment::paper
