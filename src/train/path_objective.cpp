#include "path_objective.h"

namespace holdfast {
namespace {

Path::Settings path_settings(const Options& options, const char* steps) {
  return {.steps = options.integer(steps), .memory = options.integer("memory") << 20};
}

}  // namespace

std::vector<OptionSpec> PathObjective::options_with(OptionSpec weight) {
  std::vector<OptionSpec> options{std::move(weight)};
  for (auto& part : {InnerMaximum::options(), path_options()}) options.insert(options.end(), part.begin(), part.end());
  return options;
}

PathObjective::PathObjective(const Options& options, const std::vector<std::string>& weights)
    : Objective(options.canonical(), weights),
      weight_(options.real("weight")),
      inner_(InnerMaximum::of(options)),
      inner_path_(path_settings(options, "inner_path_steps")),
      path_(path_settings(options, "path_steps")) {}

std::vector<Term> PathObjective::terms(double) const {
  return {{.name = "ce"}, {.name = "penalty", .weight = weight_}, {.name = "robust_accuracy", .weight = 0}};
}

}  // namespace holdfast
