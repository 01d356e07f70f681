#include "run.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/number.h"
#include "holdfast/core/words.h"

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

std::string key_of(const std::string& setting, const std::string& choice) {
  return setting + "\n" + choice;
}

Value total(double count) {
  return {.value = count};
}

Json point_number(const std::string& text) {
  const std::optional<double> number = parse_quotient(text);
  if (!number) return text;
  return *number == std::floor(*number) ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
}

// A number with its interval under "value", "low" and "high".
void add_value(Json& point, const Value& value) {
  const auto number = [](double v) { return std::isnan(v) ? Json() : Json(v); };
  point["value"] = number(value.value);
  point["low"] = number(value.low.value_or(value.value));
  point["high"] = number(value.high.value_or(value.value));
}

}  // namespace

bool meets(const Words& words, const std::vector<std::string>& conditions) {
  return std::ranges::all_of(conditions, [&](const std::string& condition) {
    const std::size_t equals = condition.find('=');
    const std::vector<std::string> values = split(condition.substr(equals + 1), "|");
    return std::ranges::find(values, words.at(condition.substr(0, equals))) != values.end();
  });
}

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

PaperRun::PaperRun(ExperimentContext& run_context, const Plan& of, Words given)
    : context(run_context),
      plan(of),
      paper(paper_named(of.paper, run_context.scale)),
      options(std::move(given)),
      seed(run_context.seed) {
  for (const Setting& setting : plan.settings) {
    if (context.wants(setting.name)) settings.push_back(setting);
  }
  result.title = plan.title;
  result.paper = paper.citation;
  for (const TablePlan& table : plan.tables) {
    tables_[table.name] = table.empty();
    tables_[table.name].caption = fill(table.caption, options);
    measured_[table.name] = {&table, {}};
  }
  for (const FigurePlan& figure : plan.figures)
    figures_[figure.name] = {.name = figure.name, .caption = fill(figure.caption, options)};
}

const std::vector<MethodNetworks>& PaperRun::networks(const Setting& setting) {
  return networks(setting, plan.choice);
}

const std::vector<MethodNetworks>& PaperRun::networks(const Setting& setting, const std::string& choice) {
  const std::string key = key_of(setting.name, choice);
  if (!networks_.contains(key)) networks_[key] = train_networks(context, paper, setting, plan.methods, choice);
  return networks_.at(key);
}

const MeasuredTable& PaperRun::measured(const std::string& name) const {
  HOLDFAST_CHECK(measured_.contains(name));
  return measured_.at(name);
}

ResultTable& PaperRun::table(const std::string& name) {
  HOLDFAST_CHECK(tables_.contains(name));
  return tables_.at(name);
}

Figure& PaperRun::figure(const std::string& name) {
  HOLDFAST_CHECK(figures_.contains(name));
  return figures_.at(name);
}

void PaperRun::draw(const std::string& name, const Json& points) {
  const auto declared = std::ranges::find(plan.figures, name, &FigurePlan::name);
  const std::string file = plan.paper + "/" + declared->spec;
  figure(name).spec = parse_json(carried_file(file), file);
  figure(name).spec["data"]["values"] = points;
}

const Claim& PaperRun::claim(const std::string& id) const {
  const auto found = std::ranges::find(plan.claims, id, &Claim::id);
  HOLDFAST_CHECK(found != plan.claims.end());
  return *found;
}

void PaperRun::judge(const std::string& id, const Finding& finding, std::int64_t seeds) {
  Words words = finding.words;
  words.insert(options.begin(), options.end());
  const Claim& declared = claim(id);
  verdicts_[id] =
      make_verdict(id, fill(declared.says, words), finding.judgement, fill(declared.why, words), finding.number, seeds);
}

std::vector<Case> PaperRun::cases_of(const Claim& claim) const {
  const MeasuredTable& table = measured(claim.table);
  std::vector<Case> cases;
  for (const MeasuredRow& row : table.rows) {
    if (!meets(row.words, claim.rows)) continue;
    for (const std::string& column : claim.columns) {
      Words words = row.words, changes;
      words["column"] = column;
      words["metric"] = row.setting->fill(paper.call(table.plan->columns[table.column(column)].metric));
      for (const std::string& change : claim.minus)
        changes[change.substr(0, change.find('='))] = change.substr(change.find('=') + 1);
      const MeasuredRow* other = changes.empty() ? &row : table.like(row, changes);
      if (other == nullptr) continue;
      const Numbers& numbers = table.numbers(row, column);
      const std::string& minus = claim.minus_column.empty() ? column : claim.minus_column;
      const bool is_difference = !claim.minus.empty() || !claim.minus_column.empty();
      cases.push_back({fill(claim.case_name, words), is_difference
                                                         ? bounded_difference(numbers, table.numbers(*other, minus), seed)
                                                         : paper::value_of(numbers, seed)});
    }
  }
  return cases;
}

void PaperRun::judge_all_above(const std::string& id, const std::vector<Case>& cases, const std::string& also, std::int64_t seeds,
                               Words words) {
  words.insert(options.begin(), options.end());
  const Claim& declared = claim(id);
  verdicts_[id] = all_above(declared.limit, id, fill(declared.says, words), fill(declared.what, words), cases, also, seeds);
}

std::string PaperRun::accuracies_in_words() {
  std::string text;
  for (const Setting& setting : settings) {
    const std::vector<MethodNetworks>& all = networks(setting);
    if (all.empty()) continue;
    std::vector<std::string> parts;
    for (const MethodNetworks& one : all)
      parts.push_back(fmt::format("{} {}", one.method.name, words(share(over_seeds(test_accuracies(one))))));
    text += fmt::format("Test accuracy on {}: {}. ", setting.name, fmt::join(parts, ", "));
  }
  return text;
}

std::int64_t PaperRun::fewest_members() const {
  std::int64_t fewest = 0;
  for (const Setting& setting : settings) {
    if (setting.model.empty()) fewest = fewest == 0 ? setting.members : std::min(fewest, setting.members);
  }
  return fewest;
}

void PaperRun::leave_notes() {
  for (const Note& note : plan.notes) {
    if (note.settings.empty()) context.note(note.text);
    for (const Setting& setting : settings) {
      if (setting.is_one_of(note.settings)) context.note(setting.fill(note.text));
    }
  }
}

// Chosen weights, by choice where there are several; settings without a choice are recorded whole.
void PaperRun::record_settings() {
  for (const auto& [name, text] : plan.record) {
    const std::size_t dot = name.find('.');  // "gauntlet.effort" is a field of a field
    (dot == std::string::npos ? result.settings[name] : result.settings[name.substr(0, dot)][name.substr(dot + 1)]) = text;
  }
  for (const Setting& setting : settings) {
    if (plan.choice.empty()) {
      record_whole(setting);
      continue;
    }
    Json by_choice = Json::object();
    for (const auto& [key, all] : networks_) {
      if (all.empty() || !key.starts_with(setting.name + "\n")) continue;
      Json& weights = by_choice[key.substr(setting.name.size() + 1)] = Json::object();
      for (const MethodNetworks& one : all) {
        if (!one.weights.empty()) weights[one.method.name] = one.weights;
      }
    }
    if (!by_choice.empty()) result.settings["weights"][setting.name] = by_choice.size() == 1 ? by_choice.front() : by_choice;
  }
}

void PaperRun::record_whole(const Setting& setting) {
  if (networks(setting).empty()) return;
  Json& entry = result.settings[setting.name] = settings_json(setting);
  for (const MethodNetworks& one : networks(setting)) {
    if (one.method.recipe.empty()) continue;
    const std::string recipe = recipe_call(one.method, setting);
    entry["trainings"][one.method.name]["recipe"] = recipe;
    if (const double evaluations = gradient_evaluations(recipe); !std::isnan(evaluations))
      entry["trainings"][one.method.name]["gradient evaluations a sample"] = evaluations;
  }
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
            MeasuredRow row{&setting, &one, row_words(setting, one.method, one.weights, explainer, attack, radius), {}, {}};
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
  const std::string key = key_of(setting.name, member.trained.key);
  if (!rows_.contains(key)) rows_[key] = right_rows(*member.trained.model, member.data->data, setting.samples);
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

std::vector<PaperRun::Request> PaperRun::requests_of(const MeasuredRow& row, const ColumnPlan& column, CellBatch& batch) {
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
      AttackChoice choice =
          attack_of(setting, call(attack), own ? std::vector{metric} : metrics_of(plan.metrics, setting), column.select);
      const auto canonical = [](const std::string& one) { return metrics().options(one).canonical(); };
      if (std::ranges::find(choice.metrics, canonical(metric), canonical) == choice.metrics.end())
        choice.metrics.push_back(metric);
      choice.aim = own ? "" : plan.aim;
      choice.epsilon = epsilon;
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
  std::vector<double> numbers;
  Numbers samples;
  for (std::size_t i = 0; i < from.cells.size(); ++i) {
    const AttackedCell& cell = from.cells[i];
    const double undefined = static_cast<double>(std::ranges::count_if(from.values[i], [](double v) { return std::isnan(v); })),
                 all = static_cast<double>(from.values[i].size()), wrong = static_cast<double>(cell.left_out);
    if (column.what == "sensitivity") samples.values.push_back(cell.sensitivity);
    numbers.push_back(column.what == "flipped"             ? cell.flipped
                      : column.what == "AUC before"        ? cell.auc
                      : column.what == "AUC after"         ? cell.attacked_auc
                      : column.what == "distinct top sets" ? static_cast<double>(cell.metrics.front().distinct_top_sets)
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
    value = total(column.of == "gradient evaluations" ? numbers.means().front() : sum);
    if (column.what == "misclassified" && row.setting->samples_are == "right")
      value.value +=
          static_cast<double>(rows_.at(key_of(row.setting->name, row.networks->members.front().trained.key)).passed_over);
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

void PaperRun::measure_tables() {
  CellBatch batch(seed);
  std::map<std::string, std::vector<std::vector<std::vector<Request>>>> requests;  // by table, row and column
  for (const TablePlan& table : plan.tables) {
    if (table.is_analysed) continue;
    MeasuredTable& own = measured_.at(table.name);
    own.rows = rows_of(table);
    for (const MeasuredRow& row : own.rows) {
      auto& by_column = requests[table.name].emplace_back();
      for (const ColumnPlan& column : table.columns) by_column.push_back(requests_of(row, column, batch));
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
      }
      for (const ColumnPlan& column : table.columns) {
        if (!column.choice.empty()) row.words["strong_weights"] = networks_of(row, column)->weights;
      }
      std::vector<std::string> keys;
      for (const std::string& key : table.keys) keys.push_back(fill(named(key).second, row.words));
      tables_.at(table.name).add(std::move(keys), row.values);
    }
  }
}

void PaperRun::judge_declared() {
  for (const Claim& one : plan.claims) {
    if (one.columns.empty() || verdicts_.contains(one.id)) continue;
    std::vector<std::string> names;
    for (const Setting& setting : settings) {
      if (!networks(setting).empty()) names.push_back(setting.name);
    }
    std::vector<std::string> by_column;
    for (const std::string& column : one.columns) {
      Claim part = one;
      part.columns = {column};
      by_column.push_back(fmt::format("{} alone {}", column, outcome_above(cases_of(part), one.limit)));
    }
    Words words{{"datasets", fmt::format("{}", fmt::join(names, ", "))},
                {"accuracies", one.also == "{accuracies}" ? accuracies_in_words() : ""},
                {"by_column", fmt::format("Of {}.", fmt::join(by_column, "; of "))}};
    words.insert(options.begin(), options.end());
    judge_all_above(one.id, cases_of(one), fill(one.also, words), fewest_members(), words);
  }
}

void PaperRun::draw_declared() {
  for (const FigurePlan& figure : plan.figures) {
    if (figure.is_analysed) continue;
    Json points = Json::array();
    for (const std::string& name : figure.tables) {
      const MeasuredTable& table = measured(name);
      for (const MeasuredRow& row : table.rows) {
        if (!meets(row.words, figure.rows)) continue;
        for (const std::string& column : figure.columns) {
          Words words = row.words;
          words.insert(
              {{"column", column}, {"table", table.plan->label}, {"column_number", column.substr(column.find('=') + 1)}});
          Json point = Json::object();
          for (const std::string& text : figure.fields) {
            const auto [field, word] = named(text);
            const bool is_number = field.ends_with('#');
            point[is_number ? field.substr(0, field.size() - 1) : field] =
                is_number ? point_number(fill(word, words)) : Json(fill(word, words));
          }
          add_value(point, row.values[table.column(column)]);
          points.push_back(std::move(point));
        }
      }
    }
    draw(figure.name, points);
  }
}

void PaperRun::run() {
  leave_notes();
  measure_tables();
  if (!plan.analysis.empty()) analyses_of(plan.paper).at(plan.analysis)(*this);
  record_settings();
  judge_declared();
  draw_declared();
  for (const TablePlan& table : plan.tables) {
    if (!table.is_hidden) result.tables.push_back(std::move(tables_.at(table.name)));
  }
  for (const FigurePlan& figure : plan.figures) result.figures.push_back(std::move(figures_.at(figure.name)));
  for (const Claim& claim : plan.claims) {
    if (verdicts_.contains(claim.id)) result.verdicts.push_back(verdicts_.at(claim.id));
  }
}

namespace {

class PaperExperiment final : public Experiment {
 public:
  PaperExperiment(std::string text, std::string where, const Options& options)
      : Experiment(options.canonical()), text_(std::move(text)), where_(std::move(where)) {
    const Plan plan = read_plan(text_, where_, Scale::kQuick);
    for (const OptionSpec& option : plan.info.options) options_[option.name] = options.word(option.name);
    // A mistake at any scale is found now.
    for (const Scale scale : {Scale::kQuick, Scale::kCpu, Scale::kFull})
      check_plan(read_plan(text_, where_, scale, options_), paper_named(plan.paper, scale), options_);
    const auto is_given = [&](const std::string& option) { return options.given(option); };
    if (std::ranges::any_of(plan.together, is_given) && !std::ranges::all_of(plan.together, is_given))
      usage_error("{}: give {}=FILE together", name(), fmt::join(plan.together, "=FILE and "));
  }

  ExperimentResult run(ExperimentContext& context) const override {
    const Plan plan = read_plan(text_, where_, context.scale, options_);
    PaperRun run(context, plan, options_);
    run.run();
    return std::move(run.result);
  }

 private:
  std::string text_, where_;
  Words options_;
};

}  // namespace

std::unique_ptr<Experiment> make_paper_experiment(const std::string& text, const std::string& where, const Options& options) {
  return std::make_unique<PaperExperiment>(text, where, options);
}

}  // namespace holdfast::experiment::paper
