// The recipes: objectives under the names that tables use, each with the activation it is meant for. All are the papers' ReLU
// unless they say otherwise; `activation=softplus` is an option of each, because in the code of R2ET's authors a switch to
// softplus is hidden in R2ET.
#include <fmt/ranges.h>

#include "holdfast/train/objective.h"

namespace holdfast::train {
namespace {

const char* const kR2et = "Chen et al., Training for Stable Explanation for Free, NeurIPS 2024";

// A recipe that is an objective under the objective's own summary, or under another name and with some options fixed.
struct ObjectiveRecipe {
  std::string objective;
  std::string name = objective, summary = {};                   // empty: the objective's
  std::vector<std::pair<std::string, std::string>> fixed = {};  // options of the objective and their values
  std::vector<std::string> without = {};                        // options that mean nothing then
};

std::vector<ObjectiveRecipe> objective_recipes() {
  return {{.objective = "est_h"},
          {.objective = "exact_h"},
          {.objective = "ssr"},
          {.objective = "at"},
          {.objective = "cl"},
          {.objective = "r2et",
           .summary = "wide gaps between the top k features and all others, and a flat gradient",
           .fixed = {{"pairs", "all"}},
           .without = {"count"}},
          {.objective = "r2et",
           .name = "r2et_mm",
           .summary = "wide gaps of the pairs around rank k, and a flat gradient",
           .fixed = {{"pairs", "next"}}},
          {.objective = "r2et",
           .name = "r2et_no_h",
           .summary = "wide gaps between the top k features and all others",
           .fixed = {{"pairs", "all"}, {"curvature", "0"}},
           .without = {"count", "form", "kappa"}},
          {.objective = "r2et",
           .name = "r2et_mm_no_h",
           .summary = "wide gaps of the pairs around rank k",
           .fixed = {{"pairs", "next"}, {"curvature", "0"}},
           .without = {"form", "kappa"}},
          {.objective = "pair_hinge"}};
}

std::vector<OptionSpec> activation_options() {
  return {{"activation", "own", one_of({"own", "relu", "softplus"}),
           "own: the architecture's, which is ReLU wherever the papers' is"},
          {"beta", 0.5, above(0), "sharpness of softplus"}};
}

std::string activation_of(const Options& options) {
  const std::string& word = options.word("activation");
  if (word == "softplus") return fmt::format("softplus(beta={})", options.real("beta"));
  return word == "own" ? "" : word;
}

bool is_free(const ObjectiveRecipe& recipe, const std::string& option) {
  const auto same = [&](const auto& pair) { return pair.first == option; };
  return std::ranges::find(recipe.without, option) == recipe.without.end() && std::ranges::none_of(recipe.fixed, same);
}

// The objective's call: what is fixed, and what the recipe's call gave.
std::string objective_call(const ObjectiveRecipe& recipe, const MethodInfo& objective, const Options& options) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : recipe.fixed) parts.push_back(name + "=" + value);
  for (const auto& [name, value] : parse_method_call(options.complete()).options) {
    const auto same = [&](const OptionSpec& option) { return option.name == name; };
    if (std::ranges::any_of(objective.options, same)) parts.push_back(name + "=" + value);
  }
  return fmt::format("{}({})", recipe.objective, fmt::join(parts, ","));
}

void add_objective_recipe(Registry<Recipe>& registry, const ObjectiveRecipe& recipe) {
  const MethodInfo& objective = objectives().info(recipe.objective);
  MethodInfo info = objective;
  info.name = recipe.name;
  if (!recipe.summary.empty()) info.summary = recipe.summary;
  std::erase_if(info.options, [&](const OptionSpec& option) { return !is_free(recipe, option.name); });
  for (OptionSpec& option : activation_options()) info.options.push_back(std::move(option));
  registry.add(info, [recipe, objective](const Options& options) {
    return std::make_unique<Recipe>(Recipe{.name = options.canonical(),
                                           .objective = objective_call(recipe, objective, options),
                                           .activation = activation_of(options)});
  });
}

void add_wd(Registry<Recipe>& registry) {
  registry.add({.name = "wd",
                .summary = "cross-entropy with weight decay",
                .citation = kR2et,
                .options = {{"decay", 5e-4, above(0), "weight of the L2 penalty"}},
                .notes = "The paper does not give the weight; 5e-4 is common practice."},
               [](const Options& options) {
                 return std::make_unique<Recipe>(Recipe{.name = options.canonical(), .weight_decay = options.real("decay")});
               });
}

void add_sp(Registry<Recipe>& registry) {
  registry.add(
      {.name = "sp",
       .summary = "cross-entropy with softplus as the activation",
       .citation = kR2et,
       .options = {{"beta", 0.5, above(0), "sharpness of the softplus; ReLU is the limit of large beta"}},
       .notes = "beta = 0.5 as in the authors' code. So smooth a network is close to a linear one: look at its between level."},
      [](const Options& options) {
        return std::make_unique<Recipe>(
            Recipe{.name = options.canonical(), .activation = fmt::format("softplus(beta={})", options.real("beta"))});
      });
}

// Rows that every contest has: what is won by logistic regression is not won by a method.
void add_convex(Registry<Recipe>& registry) {
  const OptionSpec ridge{"ridge", 0.0, at_least(0), "weight of the squared weights; 0: the best on the validation samples"};
  const auto add = [&](const MethodInfo& info) {
    registry.add(info, [](const Options& options) {
      const std::string call = options.complete();  // its options are the objective's
      return std::make_unique<Recipe>(Recipe{.name = options.canonical(), .objective = "convex" + call.substr(call.find('('))});
    });
  };
  add({.name = "linear", .summary = "logistic regression at its optimum", .options = {ridge}});
  add({.name = "gated_linear",
       .summary = "logistic regression with interactions of dummies and features, as a network with one hidden layer",
       .options = {{"gates", 15, at_least(1), "dummies whose interactions with all features join"}, ridge}});
  add({.name = "gauged_linear",
       .summary =
           "logistic regression with units that are zero on every valid row and turn its gradient: what measures must not reward",
       .options = {{"gauge", "levels", one_of({"levels", "steps"}), "between levels of a category, or between steps of a number"},
                   ridge}});
}

// The recipe has the objective's name and options and leaves the activation to the architecture.
void add_as_it_is(Registry<Recipe>& registry, const std::string& objective) {
  registry.add(objectives().info(objective), [](const Options& options) {
    return std::make_unique<Recipe>(Recipe{.name = options.canonical(), .objective = options.canonical()});
  });
}

}  // namespace

const Registry<Recipe>& recipes() {
  static const Registry<Recipe> all = [] {
    Registry<Recipe> registry("recipe");
    registry.add({.name = "vanilla", .summary = "cross-entropy, nothing else"},
                 [](const Options& options) { return std::make_unique<Recipe>(Recipe{.name = options.canonical()}); });
    add_wd(registry);
    add_sp(registry);
    add_convex(registry);
    for (const ObjectiveRecipe& recipe : objective_recipes()) add_objective_recipe(registry, recipe);
    for (const char* objective : {"own_top", "pgd", "ig_norm", "ig_sum_norm", "steady_map"}) add_as_it_is(registry, objective);
    return registry;
  }();
  return all;
}

}  // namespace holdfast::train
