// The methods of the R2ET paper's tables, with the weights that are tried, and ours.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/train/objective.h"
#include "zoo.h"

namespace holdfast::r2et {
namespace {

// Above these little is left of a network on tables: at gap=0.3 without curvature its AUC falls to a coin's.
const std::vector<std::string> kCurvatures{"curvature=0.001", "curvature=0.01", "curvature=0.1", "curvature=1"};
const std::vector<std::string> kGaps{"gap=0.003", "gap=0.01", "gap=0.03", "gap=0.1"};
const std::vector<std::string> kBoth{"gap=0.03,curvature=0.001", "gap=0.1,curvature=0.001", "gap=0.1,curvature=0.01",
                                     "gap=0.3,curvature=0.01", "gap=0.3,curvature=0.1"};
// Gradients by pixels and edges are small: the same effect needs larger weights. At gap=10 little is left of the AUC there too.
const std::vector<std::string> kOtherCurvatures{"curvature=0.01", "curvature=0.1"};
const std::vector<std::string> kOtherGaps{"gap=0.3", "gap=1", "gap=3"};
const std::vector<std::string> kOtherBoth{"gap=0.3,curvature=0.01", "gap=1,curvature=0.01", "gap=3,curvature=0.1"};

Method r2et_method(const std::string& name, const std::string& recipe, bool with_curvature, bool softplus) {
  return {.name = softplus ? name + ", softplus" : name,
          .paper = name,
          .recipe = recipe,
          .options = softplus ? "activation=softplus" : "",
          .grid = with_curvature ? kBoth : kGaps,
          .other_grid = with_curvature ? kOtherBoth : kOtherGaps};
}

std::vector<Method> make_paper_methods() {
  std::vector<Method> methods{
      {.name = "linear", .paper = "", .recipe = "vanilla", .architecture = "linear", .tabular_only = true},
      {.name = "Vanilla", .paper = "Vanilla", .recipe = "vanilla"},
      {.name = "WD", .paper = "WD", .recipe = "wd", .grid = {"decay=0.0001", "decay=0.001", "decay=0.01"}, .other_grid = {}},
      {.name = "SP", .paper = "SP", .recipe = "sp"},
      {.name = "Est-H", .paper = "Est-H", .recipe = "est_h", .grid = kCurvatures, .other_grid = kOtherCurvatures},
      {.name = "Exact-H", .paper = "Exact-H", .recipe = "exact_h", .grid = kCurvatures, .tabular_only = true},
      {.name = "SSR", .paper = "SSR", .recipe = "ssr", .grid = kCurvatures, .tabular_only = true},
      {.name = "AT", .paper = "AT", .recipe = "at", .grid = {"step=0.03", "step=0.1", "step=0.3"}, .other_grid = {}}};
  for (const bool softplus : {false, true}) {
    methods.push_back(r2et_method("R2ET\\H", "r2et_no_h", false, softplus));
    methods.push_back(r2et_method("R2ET-mm\\H", "r2et_mm_no_h", false, softplus));
    methods.push_back(r2et_method("R2ET", "r2et", true, softplus));
    methods.push_back(r2et_method("R2ET-mm", "r2et_mm", true, softplus));
  }
  return methods;
}

std::vector<Method> with_ours() {
  std::vector<Method> methods = make_paper_methods();
  // With the hinge as strong as the barrier from weak gates to strong ones, then 10 to 100 times as strong: which is better
  // depends on how far apart the data's groups are (docs/training.md).
  methods.push_back(
      {.name = "pair hinge",
       .paper = "",
       .recipe = "pair_hinge",
       .grid = {"gate=0.1,hinge=0.03,between=0.03", "gate=0.3,hinge=0.3,between=0.3", "gate=1,hinge=0.3,between=0.3",
                "gate=3,hinge=0.03,between=0.03", "gate=0.03,hinge=0.3,between=0.01", "gate=0.01,hinge=0.3,between=0.003",
                "gate=0.1,hinge=1,between=0.1", "gate=0.3,hinge=3,between=0.1"},
       .tabular_only = true});
  return methods;
}

bool takes(const MethodInfo& recipe, const std::string& option) {
  return std::any_of(recipe.options.begin(), recipe.options.end(), [&](const OptionSpec& spec) { return spec.name == option; });
}

}  // namespace

const std::vector<Method>& paper_methods() {
  static const std::vector<Method> methods = make_paper_methods();
  return methods;
}

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods = with_ours();
  return methods;
}

const Method& method(const std::string& name) {
  for (const Method& known : all_methods()) {
    if (known.name == name) return known;
  }
  HOLDFAST_CHECK(false);
  return all_methods().front();
}

std::vector<const Method*> methods_for(const Setting& setting, const std::vector<Method>& methods) {
  std::vector<const Method*> fitting;
  for (const Method& one : methods) {
    if (setting.tabular || !one.tabular_only) fitting.push_back(&one);
  }
  return fitting;
}

std::string recipe_call(const Method& method, const Setting& setting, const std::string& weights) {
  const MethodInfo& recipe = recipes().info(method.recipe);
  std::vector<std::string> options;
  if (takes(recipe, "top_k")) options.push_back(fmt::format("top_k={}", setting.k));
  if (takes(recipe, "project") && setting.encoding == "one-hot") options.emplace_back("project=none");
  if (takes(recipe, "count") && setting.mm_pairs > 0) options.push_back(fmt::format("count={}", setting.mm_pairs));
  if (!method.options.empty()) options.push_back(method.options);
  if (!weights.empty()) options.push_back(weights);
  return options.empty() ? method.recipe : fmt::format("{}({})", method.recipe, fmt::join(options, ","));
}

TrainOptions training(const Setting& setting, const Method& method, const std::string& weights, std::int64_t epochs,
                      std::uint64_t seed) {
  return {.architecture = method.architecture.empty() ? setting.architecture : method.architecture,
          .recipe = recipe_call(method, setting, weights),
          .epochs = epochs,
          .batch_size = setting.batch_size,
          .optimizer = setting.optimizer,
          .learning_rate = setting.learning_rate,
          .early_stopping = {.restore_best = false},  // the paper's: a fixed number of epochs
          .seed = seed};
}

}  // namespace holdfast::r2et
