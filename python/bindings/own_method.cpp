#include "own_method.h"

#include <map>

#include "holdfast/attack/attack.h"
#include "holdfast/core/error.h"
#include "holdfast/measure/measure.h"
#include "holdfast/train/objective.h"
#include "lent.h"

namespace holdfast::python {
namespace {

OptionRange range_of(const Json& option) {
  OptionRange range;
  if (option.contains("low")) range.low = option.at("low").get<double>();
  if (option.contains("high")) range.high = option.at("high").get<double>();
  if (option.contains("words")) range.words = option.at("words").get<std::vector<std::string>>();
  return range;
}

OptionSpec spec_of(const Json& option) {
  const auto name = option.at("name").get<std::string>(), help = option.at("help").get<std::string>();
  const Json& value = option.at("default");
  const OptionRange range = range_of(option);
  if (value.is_boolean()) return {name, value.get<bool>(), range, help};
  if (value.is_number_integer()) return {name, value.get<std::int64_t>(), range, help};
  if (value.is_number()) return {name, value.get<double>(), range, help};
  return {name, value.get<std::string>().c_str(), range, help};
}

MethodInfo info_of(const Json& json) {
  MethodInfo info{.name = json.at("name").get<std::string>(),
                  .summary = json.at("summary").get<std::string>(),
                  .citation = json.at("citation").get<std::string>(),
                  .needs = json.at("needs").get<std::vector<std::string>>(),
                  .notes = json.at("notes").get<std::string>()};
  for (const Json& option : json.at("options")) info.options.push_back(spec_of(option));
  return info;
}

std::unique_lock<std::recursive_mutex> take_turn() {
  static auto* const turns = new std::recursive_mutex;  // work may be under way when the program ends
  if (PyGILState_Check() == 0) return std::unique_lock(*turns);
  const py::gil_scoped_release unlocked;  // whoever has the turn needs the interpreter
  return std::unique_lock(*turns);
}

struct Kind {
  void (*extend)(OwnMethod);
  std::function<void(const std::string&)> forget;
  std::function<std::string(const std::string&)> canonical;  // of a call; throws kUsage
};

template <class Product>
Kind kind_of(void (*extend)(OwnMethod), Registry<Product>& registry) {
  return {extend, [&registry](const std::string& name) { registry.forget(name); },
          [&registry](const std::string& call) { return registry.make(call)->name(); }};
}

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all{{"metrics", kind_of(extend_metrics, metrics_to_extend())},
                                               {"explainers", kind_of(extend_explainers, explainers_to_extend())},
                                               {"attacks", kind_of(extend_attacks, attacks_to_extend())},
                                               {"measures", kind_of(extend_measures, measures_to_extend())},
                                               {"objectives", kind_of(extend_objectives, objectives_to_extend())}};
  return all;
}

}  // namespace

SharedObject share(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            if (!Py_IsInitialized()) return;  // registries outlive the interpreter, and what it held is gone with it
            const py::gil_scoped_acquire locked;
            delete held;
          }};
}

PythonTurn::PythonTurn() : turn_(take_turn()) {}

py::dict keywords_of(const MethodInfo& info, const Options& options) {
  py::dict keywords;
  for (const OptionSpec& spec : info.options) {
    const py::str name(spec.name);
    if (std::holds_alternative<bool>(spec.value)) {
      keywords[name] = options.flag(spec.name);
    } else if (std::holds_alternative<std::int64_t>(spec.value)) {
      keywords[name] = options.integer(spec.name);
    } else if (std::holds_alternative<double>(spec.value)) {
      keywords[name] = options.real(spec.name);
    } else {
      keywords[name] = options.word(spec.name);
    }
  }
  return keywords;
}

void bind_own_methods(py::module_& module) {
  bind_lent(module);
  module.def(
      "extend",
      [](const std::string& kind, const std::string& info, py::object function, const std::string& facts) {
        kinds().at(kind).extend({info_of(parse_json(info, "method")), share(std::move(function)), parse_json(facts, "method")});
      },
      py::arg("kind"), py::arg("info"), py::arg("function"), py::arg("facts"));
  module.def(
      "canonical", [](const std::string& kind, const std::string& call) { return kinds().at(kind).canonical(call); },
      py::arg("kind"), py::arg("call"));
  module.def(
      "forget", [](const std::string& kind, const std::string& name) { kinds().at(kind).forget(name); }, py::arg("kind"),
      py::arg("name"));
}

}  // namespace holdfast::python
