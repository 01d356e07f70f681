// Recipes that are an objective under its own name and options: those of the papers on attribution robustness of images, and
// ours.
#include "methods.h"

namespace holdfast {
namespace {

void add_recipe(Registry<Recipe>& registry, const std::string& objective) {
  registry.add(objectives().info(objective), [](const Options& options) {
    return std::make_unique<Recipe>(Recipe{.name = options.canonical(), .objective = options.canonical()});
  });
}

}  // namespace

void add_lens_recipes(Registry<Recipe>& registry) {
  for (const char* objective : {"pgd", "ig_norm", "ig_sum_norm", "steady_map"}) add_recipe(registry, objective);
}

}  // namespace holdfast
