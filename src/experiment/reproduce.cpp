#include "holdfast/experiment/reproduce.h"

#include <algorithm>
#include <set>

#include "experiments.h"
#include "holdfast/core/error.h"

namespace holdfast {
namespace {

Registry<Experiment> make_registry() {
  Registry<Experiment> registry("experiment");
  add_r2et_experiments(registry);
  add_lens_experiments(registry);
  return registry;
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

Json to_json(const Value& value) {
  Json json{{"value", value.value}, {"low", optional_json(value.low)}, {"high", optional_json(value.high)}, {"n", value.count}};
  for (const auto& [name, level] : {std::pair{"published", value.published},
                                    {"chance", value.chance},
                                    {"between", value.between},
                                    {"specific", value.specific}}) {
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

std::vector<std::string> experiments_of(const std::string& text) {
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

}  // namespace holdfast
