#include "plan.h"

#include <algorithm>
#include <mutex>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/csv.h"
#include "holdfast/core/error.h"
#include "holdfast/core/number.h"

namespace holdfast::experiment::paper {
namespace {

using Texts = std::vector<std::string>;

Texts list(const ConfigTable& table, const std::string& key) {
  return table.texts(key, Texts{});
}

std::string word(const ConfigTable& table, const std::string& key, const std::string& fallback = "") {
  return table.text(key, fallback);
}

// Entries may be kept to some scales. All of it is read at every scale, so that a mistake is found at once.
bool is_at(const Texts& scales, Scale scale) {
  return scales.empty() || std::ranges::find(scales, to_string(scale)) != scales.end();
}

template <class Item, class Read>
std::vector<Item> read_all(const ConfigTable& root, const std::string& key, Scale scale, Read read) {
  std::vector<Item> items;
  for (const ConfigTable& table : root.tables(key)) {
    Item item = read(table);
    if (is_at(list(table, "scales"), scale)) items.push_back(std::move(item));
  }
  return items;
}

Method read_method(const ConfigTable& table, Scale scale) {
  return {.name = text_by_scale(table, "name", scale, ""),
          .paper = word(table, "paper"),
          .recipe = text_by_scale(table, "recipe", scale, ""),
          .options = text_by_scale(table, "options", scale, ""),
          .grid = list(table, "grid"),
          .other_grid = list(table, "other_grid"),
          .architecture = text_by_scale(table, "architecture", scale, ""),
          .differs = word(table, "differs"),
          .tags = list(table, "tags"),
          .only = word(table, "only"),
          .best_epoch = table.flag("best_epoch", false)};
}

NamedCall read_call(const ConfigTable& table, Scale scale) {
  return {.name = word(table, "name"),
          .call = text_by_scale(table, "call", scale, ""),
          .attacks = list(table, "attacks"),
          .needs_layers = table.flag("needs_layers", false)};
}

ColumnPlan read_column(const ConfigTable& table) {
  ColumnPlan column{.name = word(table, "name"),
                    .kind = parse_column_kind(word(table, "kind", "share")),
                    .metric = word(table, "metric"),
                    .attack = word(table, "attack"),
                    .select = word(table, "select", "worst"),
                    .aim = word(table, "aim"),
                    .explainer = word(table, "explainer"),
                    .choice = word(table, "choice"),
                    .samples = word(table, "samples"),
                    .rows = word(table, "rows"),
                    .measure = word(table, "measure"),
                    .of = word(table, "of"),
                    .from = word(table, "from"),
                    .what = word(table, "what"),
                    .published = word(table, "published"),
                    .only = word(table, "only")};
  column.levels = table.texts("levels", column.levels);
  return column;
}

TablePlan read_table(const ConfigTable& table) {
  TablePlan plan{.name = word(table, "name"),
                 .caption = word(table, "caption"),
                 .label = word(table, "label", word(table, "name")),
                 .keys = list(table, "keys"),
                 .columns = {},
                 .settings = list(table, "settings"),
                 .methods = list(table, "methods"),
                 .published_method = word(table, "published_method", "{paper}"),
                 .published_dataset = word(table, "published_dataset", "{dataset}"),
                 .is_analysed = table.flag("analysed", false),
                 .has_one_row = table.flag("one_row", false),
                 .is_hidden = table.flag("hidden", false)};
  for (const ConfigTable& column : table.tables("column")) plan.columns.push_back(read_column(column));
  return plan;
}

FigurePlan read_figure(const ConfigTable& table) {
  return {.name = word(table, "name"),
          .caption = word(table, "caption"),
          .spec = word(table, "spec"),
          .tables = list(table, "tables"),
          .columns = list(table, "columns"),
          .fields = list(table, "fields"),
          .rows = list(table, "rows"),
          .is_analysed = table.flag("analysed", false)};
}

Claim read_claim(const ConfigTable& table) {
  return {.id = word(table, "id"),
          .says = word(table, "says"),
          .why = word(table, "why"),
          .plain = word(table, "plain"),
          .limits = table.reals("limits", std::vector<double>{}),
          .table = word(table, "table"),
          .what = word(table, "what"),
          .case_name = word(table, "case"),
          .also = word(table, "also"),
          .minus_column = word(table, "minus_column"),
          .columns = list(table, "columns"),
          .rows = list(table, "rows"),
          .minus = list(table, "minus"),
          .limit = table.real("limit", 0)};
}

OptionSpec read_option(const ConfigTable& table) {
  const Texts values = list(table, "values");
  return {word(table, "name"), word(table, "default").c_str(), values.empty() ? anything() : one_of(values), word(table, "help")};
}

// Settings may be like a base or like a setting before them.
std::vector<Setting> read_settings(const ConfigTable& root, Scale scale, std::map<std::string, Setting>& known,
                                   const Words& options) {
  const auto read = [&](const ConfigTable& table) {
    const std::string like = word(table, "like");
    if (!like.empty() && !known.contains(like)) usage_error("{}: there is no base or setting '{}'", table.where("like"), like);
    Setting setting = read_setting(table, like.empty() ? Setting{} : known.at(like), scale);
    if (setting.name.empty()) usage_error("{} is missing", table.where("name"));
    if (setting.model.find('{') != std::string::npos) setting.model = fill(setting.model, options);
    known[setting.name] = setting;
    return setting;
  };
  for (const ConfigTable& base : root.tables("base")) read(base);
  std::vector<Setting> settings;
  for (const ConfigTable& table : root.tables("setting")) {
    const Setting setting = read(table);
    const Texts scales = list(table, "scales");
    const std::string with = word(table, "with_option"), without = word(table, "without_option");
    const auto is_given = [&](const std::string& option) { return options.contains(option) && options.at(option) != "none"; };
    if (is_at(scales, scale) && (with.empty() || is_given(with)) && (without.empty() || !is_given(without)))
      settings.push_back(setting);
  }
  return settings;
}

std::map<std::string, double> read_published(const std::string& file) {
  const CsvTable table = parse_csv(carried_file(file), {}, file);
  std::map<std::string, double> numbers;
  for (const std::vector<std::string>& row : table.rows) {
    for (std::size_t i = 2; i < row.size(); ++i) {
      if (!row[i].empty()) numbers[row[0] + "|" + row[1] + "|" + table.names[i]] = std::stod(row[i]);
    }
  }
  return numbers;
}

Paper read_paper(const std::string& name, Scale scale) {
  const std::string file = name + "/paper.toml";
  const Config config = Config::parse(carried_file(file), file);
  const ConfigTable root = config.root();
  Paper paper{.name = name,
              .citation = word(root, "citation"),
              .experiments = list(root, "experiments"),
              .metrics = list(root, "metrics"),
              .aim = word(root, "aim")};
  paper.settings = read_settings(root, scale, paper.bases, {});
  paper.methods = read_all<Method>(root, "method", scale, [&](const auto& table) { return read_method(table, scale); });
  paper.calls = read_all<NamedCall>(root, "call", scale, [&](const auto& table) { return read_call(table, scale); });
  paper.choices = read_all<Choice>(root, "choice", scale, [](const auto& table) {
    return Choice{word(table, "name"), word(table, "attack"), word(table, "select")};
  });
  config.finish();
  paper.numbers = read_published(name + "/published.csv");
  return paper;
}

// Names of methods, or tags; in the order of `known` where all are meant by a tag.
std::vector<Method> chosen_methods(const std::vector<Method>& known, const Texts& selectors, const std::string& where) {
  std::vector<Method> chosen;
  for (const std::string& selector : selectors) {
    const std::size_t before = chosen.size();
    for (const Method& method : known) {
      if (method.name == selector || std::ranges::find(method.tags, selector) != method.tags.end()) chosen.push_back(method);
    }
    if (chosen.size() > before) continue;
    std::vector<std::string> names;
    for (const Method& method : known) names.push_back(method.name);
    usage_error("{}: there is no method '{}'{}", where, selector, suggestion(selector, names));
  }
  return chosen;
}

// Settings by name in the order given, or all that a selector means in the order of the paper's file.
std::vector<Setting> chosen_settings(const std::vector<Setting>& known, const Texts& selectors, const Texts& left_out) {
  std::vector<Setting> chosen;
  for (const std::string& selector : selectors) {
    for (const Setting& setting : known) {
      if (setting.is_one_of({selector}) && !setting.is_one_of(left_out)) chosen.push_back(setting);
    }
  }
  return chosen;
}

void read_info(const ConfigTable& root, const std::string& citation, MethodInfo& info) {
  info.name = root.text("name", std::nullopt);
  // Kept results lie in GROUP/NAME.json, beside GROUP/verdicts.json.
  const Texts parts = split(info.name, "/");
  const auto is_plain = [](const std::string& part) { return !part.empty() && part.front() != '.' && part != "verdicts"; };
  if (parts.size() > 2 || !std::ranges::all_of(parts, is_plain))
    usage_error("{}: '{}' cannot name a file; write NAME or GROUP/NAME", root.where("name"), info.name);
  info.summary = root.text("summary", std::nullopt);
  info.citation = root.flag("is_ours", false) ? "" : citation;
  for (const ConfigTable& option : root.tables("option")) info.options.push_back(read_option(option));
  info.needs = list(root, "needs");
  info.notes = word(root, "notes");
}

}  // namespace

std::pair<std::string, std::string> named(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? std::pair(text, text) : std::pair(text.substr(0, colon), text.substr(colon + 2));
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(separator); at != std::string::npos; at = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool applies(const std::string& only, const Setting& setting, const Method& method) {
  if (only.empty() || only == setting.kind || (only == "softplus" && method.is_softplus())) return true;
  const Words words = setting.words();
  const auto field = words.find(only);
  return field != words.end() && !field->second.empty() && field->second != "0";
}

Words row_words(const Setting& setting, const Method& method, const std::string& weights, const NamedCall& explainer,
                const NamedCall& attack, const NamedCall& radius) {
  Words words = setting.words();
  const Words more{{"method", method.name},       {"paper", method.paper},
                   {"weights", weights},          {"differs", method.differs},
                   {"explainer", explainer.name}, {"attack", attack.name},
                   {"radius", radius.name},       {"explainer_call", explainer.call.empty() ? setting.explainer : explainer.call},
                   {"attack_call", attack.call},  {"radius_call", radius.call}};
  for (const auto& [name, word] : more) words.insert_or_assign(name, word);
  return words;
}

ResultTable TablePlan::empty() const {
  ResultTable table{.name = name, .caption = caption, .keys = {}, .columns = {}};
  for (const std::string& key : keys) table.keys.push_back(named(key).first);
  for (const ColumnPlan& column : columns) table.columns.push_back({column.name, column.kind});
  return table;
}

const Method& Paper::method(const std::string& wanted) const {
  const auto found = std::ranges::find(methods, wanted, &Method::name);
  if (found == methods.end()) usage_error("{} has no method '{}'", name, wanted);
  return *found;
}

std::string Paper::call(const std::string& text) const {
  const auto found = std::ranges::find(calls, text, &NamedCall::name);
  return found == calls.end() ? text : found->call;
}

std::optional<double> Paper::published(const std::string& column, const std::string& method, const std::string& dataset) const {
  const auto found = numbers.find(column + "|" + method + "|" + dataset);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

const std::vector<std::string>& Plan::factor(const std::string& name) const {
  const auto found = std::ranges::find(factors, name, &Factor::name);
  if (found == factors.end() || found->values.empty()) usage_error("{}: factor '{}' is missing", info.name, name);
  return found->values;
}

const Paper& paper_named(const std::string& name, Scale scale) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, Scale>, Paper> papers;
  const std::lock_guard guard(mutex);
  const auto key = std::pair(name, scale);
  if (!papers.contains(key)) papers.emplace(key, read_paper(name, scale));
  return papers.at(key);
}

Plan read_plan(const std::string& text, const std::string& where, Scale scale, const Words& given) {
  const Config config = Config::parse(text, where);
  const ConfigTable root = config.root();
  Plan plan{.source = text};
  plan.paper = root.text("paper", std::nullopt);
  const Paper& paper = paper_named(plan.paper, scale);
  read_info(root, paper.citation, plan.info);
  Words options = given;
  for (const OptionSpec& option : plan.info.options) options.emplace(option.name, holdfast::to_string(option.value));

  plan.title = word(root, "title", plan.info.summary);
  plan.analysis = word(root, "analysis");
  plan.choice = word(root, "choice");
  plan.aim = word(root, "aim", paper.aim);
  plan.metrics = root.texts("metrics", paper.metrics);
  plan.together = list(root, "together");
  plan.explainers = read_all<NamedCall>(root, "explainer", scale, [&](const auto& table) { return read_call(table, scale); });
  plan.attacks = read_all<NamedCall>(root, "attack", scale, [&](const auto& table) { return read_call(table, scale); });
  plan.radii = read_all<NamedCall>(root, "radius", scale, [&](const auto& table) { return read_call(table, scale); });
  for (NamedCall& radius : plan.radii) radius.call = radius.call.empty() ? radius.name : radius.call;
  plan.tables = read_all<TablePlan>(root, "table", scale, read_table);
  plan.figures = read_all<FigurePlan>(root, "figure", scale, read_figure);
  plan.claims = read_all<Claim>(root, "claim", scale, read_claim);
  plan.notes = read_all<Note>(root, "note", scale, [](const auto& table) {
    return Note{word(table, "text"), list(table, "settings")};
  });
  plan.factors = read_all<Factor>(root, "factor", scale, [](const auto& table) {
    return Factor{word(table, "name"), list(table, "values")};
  });
  for (const ConfigTable& record : root.tables("record")) plan.record[word(record, "name")] = fill(word(record, "text"), options);

  std::map<std::string, Setting> known = paper.bases;
  std::vector<Setting> settings = paper.settings, own = read_settings(root, scale, known, options);
  // A setting of the file's own takes the place of the paper's with its name.
  std::erase_if(settings, [&](const Setting& one) { return std::ranges::find(own, one.name, &Setting::name) != own.end(); });
  settings.insert(settings.end(), own.begin(), own.end());
  Texts left_out = list(root, "leave_out");
  for (const ConfigTable& table : root.tables("without")) {
    const Texts names = list(table, "settings"), scales = list(table, "scales");
    const std::string note = word(table, "note");
    if (!is_at(scales, scale)) continue;
    left_out.insert(left_out.end(), names.begin(), names.end());
    if (!note.empty()) plan.notes.push_back({note, {}});
  }
  Texts wanted = list(root, "settings");
  if (!root.has("settings") && !root.has("setting") && plan.analysis.empty())
    usage_error("{}: it has no settings; name some of the paper's in settings = [...], or add a [[setting]]", where);
  if (!root.has("settings")) {
    for (const Setting& setting : own) wanted.push_back(setting.name);
  }
  plan.settings = chosen_settings(settings, wanted, left_out);
  std::vector<Method> methods = paper.methods,
                      more =
                          read_all<Method>(root, "method", scale, [&](const auto& table) { return read_method(table, scale); });
  methods.insert(methods.end(), more.begin(), more.end());
  plan.methods = chosen_methods(methods, list(root, "methods"), root.where("methods"));
  config.finish();
  plan.all_methods = std::move(methods);
  for (const auto& [name, setting] : known) plan.all_settings.push_back(setting);
  plan.all_settings.insert(plan.all_settings.end(), settings.begin(), settings.end());
  plan.selectors = std::move(wanted);
  plan.selectors.insert(plan.selectors.end(), left_out.begin(), left_out.end());
  return plan;
}

}  // namespace holdfast::experiment::paper
