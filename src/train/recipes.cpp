// The recipes of cross-entropy: R2ET's first three baselines.
#include "methods.h"

namespace holdfast {
namespace {

const char* const kR2et = "Chen et al., Robust Ranking Explanations, 2023";

}  // namespace

void add_vanilla(Registry<Recipe>& registry) {
  registry.add({.name = "vanilla", .summary = "cross-entropy, nothing else"},
               [](const Options& options) { return std::make_unique<Recipe>(Recipe{.name = options.canonical()}); });
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

}  // namespace holdfast
