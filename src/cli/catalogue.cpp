#include "catalogue.h"

#include "holdfast/attack/attack.h"
#include "holdfast/data/dataset.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/measure/measure.h"
#include "holdfast/metric/metric.h"
#include "holdfast/model/model.h"
#include "holdfast/train/objective.h"

namespace holdfast::cli {
namespace {

Json value_to_json(const OptionValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

const char* type_word(const OptionValue& value) {
  static constexpr const char* kWords[] = {"flag", "integer", "real", "word"};
  return kWords[value.index()];
}

}  // namespace

std::vector<std::pair<std::string, std::vector<const MethodInfo*>>> catalogue() {
  return {{"explainers", explainers().infos()}, {"attacks", attacks().infos()},       {"metrics", metrics().infos()},
          {"measures", measures().infos()},     {"objectives", objectives().infos()}, {"recipes", recipes().infos()},
          {"models", architectures().infos()},  {"datasets", datasets().infos()},     {"experiments", experiments().infos()}};
}

std::vector<std::string> catalogue_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, infos] : catalogue()) kinds.push_back(kind);
  return kinds;
}

Json to_json(const MethodInfo& info) {
  Json options = Json::array();
  for (const OptionSpec& spec : info.options) {
    options.push_back({{"name", spec.name},
                       {"type", type_word(spec.value)},
                       {"default", value_to_json(spec.value)},
                       {"range", to_string(spec.range)},
                       {"help", spec.help}});
  }
  Json presets = Json::array();
  for (const Preset& preset : info.presets) {
    Json values = Json::object();
    for (const auto& [name, value] : preset.values) values[name] = value_to_json(value);
    presets.push_back({{"name", preset.name}, {"help", preset.help}, {"values", values}});
  }
  return {{"name", info.name},  {"summary", info.summary}, {"citation", info.citation}, {"options", options},
          {"presets", presets}, {"needs", info.needs},     {"notes", info.notes}};
}

}  // namespace holdfast::cli
