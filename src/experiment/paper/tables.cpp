// From a table of an experiment's file to its rows and values: which cells there are, and what their numbers come to.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/number.h"
#include "run.h"

namespace holdfast::experiment::paper {

// The cells behind one column of one row: one list for each attack, a cell for each network.
struct PaperRun::Request {
  bool is_measure = false;
  std::vector<std::size_t> cells = {};
};

namespace {

std::vector<std::string> metrics_of(const std::vector<std::string>& declared, const Setting& setting) {
  std::vector<std::string> metrics;
  for (const std::string& text : declared) {
    const auto [only, metric] = text.find(": ") == std::string::npos ? std::pair(std::string(), text) : named(text);
    if (applies(only, setting)) metrics.push_back(setting.fill(metric));
  }
  return metrics;
}

// "gap=0.01", "no admissible weight (gap=0.003)", "not counted (gap=0.01)".
std::string weights_in_words(const MethodNetworks& networks) {
  if (networks.counts()) return networks.weights;
  return networks.weights.empty() ? networks.standing : fmt::format("{} ({})", networks.standing, networks.weights);
}

}  // namespace

std::size_t MeasuredTable::column(const std::string& name) const {
  const auto found = std::ranges::find(plan->columns, name, &ColumnPlan::name);
  if (found == plan->columns.end()) usage_error("table '{}' has no column '{}'", plan->name, name);
  return static_cast<std::size_t>(found - plan->columns.begin());
}

std::vector<std::vector<const MeasuredRow*>> MeasuredTable::by_setting() const {
  std::vector<std::vector<const MeasuredRow*>> groups;
  for (const MeasuredRow& row : rows) {
    if (groups.empty() || groups.back().front()->setting != row.setting) groups.emplace_back();
    groups.back().push_back(&row);
  }
  return groups;
}

const MeasuredRow* MeasuredTable::like(const MeasuredRow& row, const Words& changes) const {
  Words wanted = row.words;
  for (const auto& [name, word] : changes) wanted[name] = word;
  for (const MeasuredRow& other : rows) {
    const bool same = std::ranges::all_of(std::vector{"name", "method", "explainer", "attack", "radius"},
                                          [&](const char* word) { return other.words.at(word) == wanted.at(word); });
    if (same) return &other;
  }
  return nullptr;
}

std::vector<MeasuredRow> PaperRun::rows_of(const TablePlan& table) {
  std::vector<MeasuredRow> rows;
  const std::vector<NamedCall> nothing{{}};
  for (const Setting& setting : settings) {
    if (!table.settings.empty() && !setting.is_one_of(table.settings)) continue;
    for (const MethodNetworks& one : networks(setting)) {
      if (!table.methods.empty() && std::ranges::find(table.methods, one.method.name) == table.methods.end()) continue;
      for (const NamedCall& explainer : table.has_one_row || plan.explainers.empty() ? nothing : plan.explainers) {
        if (explainer.needs_layers && one.members.front().trained.model->network() == nullptr) {
          context.note(
              fmt::format("{}: {} needs the layers of the network, which its file does not show", setting.name, explainer.name));
          continue;
        }
        for (const NamedCall& attack : table.has_one_row || plan.attacks.empty() ? nothing : plan.attacks) {
          if (!explainer.attacks.empty() && std::ranges::find(explainer.attacks, attack.name) == explainer.attacks.end())
            continue;
          for (const NamedCall& radius : table.has_one_row || plan.radii.empty() ? nothing : plan.radii) {
            MeasuredRow row{
                &setting, &one, row_words(setting, one.method, weights_in_words(one), explainer, attack, radius), {}, {}};
            rows.push_back(std::move(row));
          }
        }
      }
    }
  }
  return rows;
}

const MethodNetworks* PaperRun::networks_of(const MeasuredRow& row, const ColumnPlan& column) {
  if (column.choice.empty()) return row.networks;
  return find(networks(*row.setting, row.setting->fill(column.choice)), row.method());
}

// Samples that a network classifies rightly are looked for once.
StudiedNetwork PaperRun::subject(const Setting& setting, const Member& member, std::int64_t samples) {
  if (setting.samples_are != "right") return subject_of(setting, member, samples);
  const auto key = std::pair(setting.name, member.trained.key);
  if (!rows_.contains(key)) rows_[key] = right_rows_of(member, setting.samples);
  Setting plain = setting;
  plain.samples_are = "first";
  StudiedNetwork subject = subject_of(plain, member);
  subject.rows = rows_.at(key);
  if (samples > 0 && samples < std::ssize(subject.rows.positions)) {
    subject.rows.positions.resize(static_cast<std::size_t>(samples));
    subject.rows.words = fmt::format("rows {}", fmt::join(subject.rows.positions, " "));
  }
  return subject;
}

std::vector<PaperRun::Request> PaperRun::requests_of(const MeasuredRow& row, const TablePlan& table, const ColumnPlan& column,
                                                     CellBatch& batch) {
  std::vector<Request> requests;
  const Setting& setting = *row.setting;
  if (!applies(column.only, setting, row.networks->method) || (column.metric.empty() && column.measure.empty())) return requests;
  Words words = setting.words();
  words.insert(options.begin(), options.end());
  const auto call = [&](const std::string& text) { return fill(paper.call(text), words); };
  const std::int64_t samples = column.samples.empty() ? 0 : std::stoll(setting.fill(column.samples));
  const std::string metric = column.metric.empty() ? "" : call(column.metric);
  const bool own = column.aim == "own";
  const std::string& radius = row.words.at("radius_call");
  const double epsilon = radius.empty() ? setting.epsilon : parse_quotient(radius).value();
  // "a + b" stands for the lowest of several attacks.
  for (const std::string& attack : split(column.attack.empty() ? row.words.at("attack_call") : column.attack, " + ")) {
    Request request{.is_measure = !column.measure.empty()};
    for (const Member& member : networks_of(row, column)->members) {
      StudiedNetwork subject = this->subject(setting, member, samples);
      subject.explainer = call(column.explainer.empty() ? row.words.at("explainer_call") : column.explainer);
      if (request.is_measure) {
        request.cells.push_back(batch.measure(subject, call(column.measure), epsilon));
        continue;
      }
      PaperAttack choice =
          attack_of(setting, call(attack), own ? std::vector{metric} : metrics_of(plan.metrics, setting), column.select);
      const auto canonical = [](const std::string& one) { return metrics().options(one).canonical(); };
      if (std::ranges::find(choice.metrics, canonical(metric), canonical) == choice.metrics.end())
        choice.metrics.push_back(metric);
      choice.aim = own ? "" : plan.aim;
      choice.epsilon = epsilon;
      if (column.rows == "valid") {
        choice.valid = true;
        if (!member.data->data.schema.groups.empty()) choice.switches = 0;
      }
      choice.random_points = std::ranges::any_of(
          table.columns, [&](const ColumnPlan& other) { return other.from == column.name && other.what == "random points"; });
      request.cells.push_back(batch.attack(subject, choice));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

Numbers PaperRun::numbers_of(const MeasuredRow& row, const ColumnPlan& column, const std::vector<Request>& requests,
                             const CellBatch& batch) {
  std::vector<Numbers> all;
  for (const Request& request : requests) {
    if (request.is_measure) {
      all.emplace_back();
      for (const std::size_t cell : request.cells) {
        all.back().measured.push_back(batch.measured(cell));
        all.back().values.push_back(batch.measured(cell).values);
      }
    } else {
      std::vector<AttackedCell> cells;
      for (const std::size_t cell : request.cells) cells.push_back(batch.attacked(cell));
      all.push_back(paper::numbers_of(std::move(cells), row.setting->fill(paper.call(column.metric))));
    }
  }
  if (all.empty()) return {};
  return column.what == "adjusted" ? adjusted(lowest(all)) : lowest(all);
}

// Numbers of the networks, or of another column's cells.
Numbers PaperRun::derived_numbers(const MeasuredRow& row, const TablePlan& table, const ColumnPlan& column) {
  if (!column.of.empty()) {
    const MethodNetworks& networks = *networks_of(row, column);
    if (column.of == "AUC") return one_each(test_aucs(networks));
    if (column.of == "accuracy") return one_each(test_accuracies(networks));
    if (column.of == "robust accuracy") return one_each(robust_accuracies(context, networks, row.setting->epsilon));
    return one_each({gradient_evaluations(recipe_call(networks.method, *row.setting))});
  }
  const MeasuredTable& whole = measured(table.name);
  const Numbers& from = row.numbers[whole.column(column.from)];
  if (from.is_empty()) return {};
  const std::string metric = row.setting->fill(paper.call(table.columns[whole.column(column.from)].metric));
  std::vector<double> numbers;
  Numbers samples;
  for (std::size_t i = 0; i < from.cells.size(); ++i) {
    const AttackedCell& cell = from.cells[i];
    const double undefined = static_cast<double>(std::ranges::count_if(from.values[i], [](double v) { return std::isnan(v); })),
                 all = static_cast<double>(from.values[i].size()), wrong = static_cast<double>(cell.left_out);
    if (column.what == "sensitivity") samples.values.push_back(cell.sensitivity);
    if (column.what == "random points") samples.values.push_back(cell.random);
    numbers.push_back(column.what == "flipped"             ? cell.flipped
                      : column.what == "AUC before"        ? cell.auc
                      : column.what == "AUC after"         ? cell.attacked_auc
                      : column.what == "distinct top sets" ? static_cast<double>(cell.metrics.front().distinct_top_sets)
                      : column.what == "tied"              ? cell.of(metric).tied
                      : column.what == "defined"           ? all - undefined
                      : column.what == "undefined"         ? undefined
                      : column.what == "judged"            ? all - wrong
                      : column.what == "misclassified"     ? wrong
                                                           : kUndefined);
  }
  return samples.is_empty() ? one_each(numbers) : samples;
}

Value PaperRun::value_of(const MeasuredRow& row, const TablePlan& table, const ColumnPlan& column, const Numbers& numbers) const {
  Value value;
  if (column.kind == ColumnKind::kCount && !numbers.is_empty()) {
    double sum = 0;
    for (const double one : numbers.means()) sum += one;
    value.value = column.of == "gradient evaluations" ? numbers.means().front() : sum;
    if (column.what == "misclassified" && row.setting->samples_are == "right")
      value.value += static_cast<double>(rows_.at({row.setting->name, row.networks->members.front().trained.key}).passed_over);
  } else if (column.what.starts_with("below ")) {
    value = share_below(numbers, std::stod(column.what.substr(6)));
  } else if (!numbers.is_empty()) {
    value = column.kind == ColumnKind::kShare ? paper::value_of(numbers, seed) : plain_value(numbers, seed);
  }
  const auto is_shown = [&](const char* level) { return std::ranges::find(column.levels, level) != column.levels.end(); };
  if (!is_shown("chance")) value.chance = std::nullopt;
  if (!is_shown("between")) value.between = std::nullopt;
  if (!is_shown("specific")) value.specific = value.lift = value.effective_sets = value.own_advantage = std::nullopt;
  if (!column.published.empty())
    value.published =
        paper.published(column.published, fill(table.published_method, row.words), fill(table.published_dataset, row.words));
  return value;
}

// An attack that finds less than random points says nothing about robustness.
void PaperRun::note_weak_attack(const MeasuredRow& row, const MeasuredTable& table, std::size_t random) {
  const std::size_t from = table.column(table.plan->columns[random].from);
  const double found = row.values[from].value, by_chance = row.values[random].value;
  const bool higher_is_alike = row.numbers[from].perfect > row.numbers[from].least;
  if (higher_is_alike ? by_chance < found : by_chance > found)
    context.note(fmt::format("{}, {}, {}: random points find more than the attack: {:.4g} against {:.4g}", row.setting->name,
                             row.method(), table.plan->columns[from].name, by_chance, found));
}

void PaperRun::measure_tables() {
  CellBatch batch(seed);
  std::map<std::string, std::vector<std::vector<std::vector<Request>>>> requests;  // by table, row and column
  for (const TablePlan& table : plan.tables) {
    if (table.is_analysed) continue;
    MeasuredTable& own = measured_.at(table.name);
    own.rows = rows_of(table);
    for (const MeasuredRow& row : own.rows) {
      auto& by_column = requests[table.name].emplace_back();
      for (const ColumnPlan& column : table.columns) by_column.push_back(requests_of(row, table, column, batch));
    }
  }
  batch.run(context, plan.info.name);
  for (const TablePlan& table : plan.tables) {
    if (table.is_analysed) continue;
    MeasuredTable& own = measured_.at(table.name);
    for (std::size_t i = 0; i < own.rows.size(); ++i) {
      MeasuredRow& row = own.rows[i];
      for (std::size_t j = 0; j < table.columns.size(); ++j) {
        const ColumnPlan& column = table.columns[j];
        const bool is_derived = column.metric.empty() && column.measure.empty();
        row.numbers.push_back(is_derived ? derived_numbers(row, table, column)
                                         : numbers_of(row, column, requests[table.name][i][j], batch));
        row.values.push_back(value_of(row, table, column, row.numbers.back()));
        if (column.what == "random points") note_weak_attack(row, own, j);
      }
      for (const ColumnPlan& column : table.columns) {
        if (!column.choice.empty()) row.words["strong_weights"] = weights_in_words(*networks_of(row, column));
      }
      std::vector<std::string> keys;
      for (const std::string& key : table.keys) keys.push_back(fill(named(key).second, row.words));
      tables_.at(table.name).add(std::move(keys), row.values);
    }
  }
}

}  // namespace holdfast::experiment::paper
