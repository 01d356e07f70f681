#include "holdfast/experiment/reproduce.h"

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "paper/run.h"

namespace holdfast::experiment {
namespace {

// The experiments of both papers: one for each TOML file that their paper.toml names.
Registry<Experiment> make_registry() {
  Registry<Experiment> registry("experiment");
  for (const char* paper : {"r2et", "lens"}) {
    for (const std::string& name : paper::paper_named(paper, Scale::kQuick).experiments) {
      const std::string file = fmt::format("{}/{}.toml", paper, name), text = paper::carried_file(file);
      registry.add(paper::read_plan(text, file, Scale::kQuick).info,
                   [=](const Options& options) { return paper::make_paper_experiment(text, file, options); });
    }
  }
  return registry;
}

bool is_file(const std::string& text) {
  return text.ends_with(".toml");
}

std::string group_of(const std::string& name) {
  return name.substr(0, name.find('/'));
}

}  // namespace

Scale parse_scale(const std::string& text) {
  if (text == "quick") return Scale::kQuick;
  if (text == "cpu") return Scale::kCpu;
  if (text == "full") return Scale::kFull;
  usage_error("unknown scale '{}' (known: quick, cpu, full)", text);
}

std::string to_string(Scale scale) {
  return scale == Scale::kQuick ? "quick" : scale == Scale::kCpu ? "cpu" : "full";
}

std::string to_string(ColumnKind kind) {
  return kind == ColumnKind::kCount ? "count" : kind == ColumnKind::kShare ? "share" : "value";
}

ColumnKind parse_column_kind(const std::string& text) {
  if (text == "count") return ColumnKind::kCount;
  if (text == "share") return ColumnKind::kShare;
  if (text == "value") return ColumnKind::kValue;
  usage_error("unknown kind of column '{}' (known: count, share, value)", text);
}

Json to_json(const Value& value) {
  Json json{{"value", value.value}, {"low", optional_json(value.low)}, {"high", optional_json(value.high)}, {"n", value.count}};
  for (const auto& [name, level] : {std::pair{"published", value.published},
                                    {"chance", value.chance},
                                    {"between", value.between},
                                    {"specific", value.specific},
                                    {"lift", value.lift},
                                    {"effective_sets", value.effective_sets},
                                    {"own_advantage", value.own_advantage}}) {
    if (level) json[name] = *level;
  }
  return json;
}

void ResultTable::add(std::vector<std::string> row_keys, std::vector<Value> values) {
  HOLDFAST_CHECK(row_keys.size() == keys.size() && values.size() == columns.size());
  rows.push_back({std::move(row_keys), std::move(values)});
}

const Registry<Experiment>& experiments() {
  static const Registry<Experiment> registry = make_registry();
  return registry;
}

std::unique_ptr<Experiment> make_experiment(const std::string& text) {
  if (!is_file(text)) return experiments().make(text);
  const std::string toml = read_text(text);
  const MethodInfo info = paper::read_plan(toml, text, Scale::kQuick).info;
  return paper::make_paper_experiment(toml, text, Options(info, {.name = info.name, .options = {}}));
}

std::vector<std::string> experiments_of(const std::string& text) {
  if (is_file(text)) return {text};
  std::vector<std::string> names;
  for (const MethodInfo* info : experiments().infos()) {
    if (group_of(info->name) == text) names.push_back(info->name);
  }
  if (names.empty()) {
    (void)experiments().options(text);  // throws for a name or an option that is not known
    names.push_back(text);
  }
  return names;
}

}  // namespace holdfast::experiment
