#include "methods.h"

namespace holdfast {
namespace {

Registry<Objective> builtin_objectives() {
  Registry<Objective> registry("objective");
  add_ce(registry);
  add_est_h(registry);
  add_exact_h(registry);
  add_ssr(registry);
  add_at(registry);
  add_cl(registry);
  add_r2et(registry);
  add_pair_hinge(registry);
  add_pgd(registry);
  add_ig_norm(registry);
  add_ig_sum_norm(registry);
  add_steady_map(registry);
  return registry;
}

Registry<Recipe> builtin_recipes() {
  Registry<Recipe> registry("recipe");
  add_recipes(registry);
  add_lens_recipes(registry);
  return registry;
}

}  // namespace

const Registry<Objective>& objectives() {
  static const Registry<Objective> registry = builtin_objectives();
  return registry;
}

const Registry<Recipe>& recipes() {
  static const Registry<Recipe> registry = builtin_recipes();
  return registry;
}

}  // namespace holdfast
