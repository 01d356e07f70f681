#include "methods.h"

namespace holdfast {
namespace {

Registry<Measure> builtin_measures() {
  Registry<Measure> registry("measure");
  add_thickness(registry);
  add_thickness_bounds(registry);
  add_no_swap_radius(registry);
  add_certified_overlap(registry);
  add_curvature(registry);
  add_dffot(registry);
  add_comp_suff(registry);
  add_deletion_insertion(registry);
  add_sensitivity(registry);
  add_local_lipschitz(registry);
  add_relative_stability(registry);
  return registry;
}

}  // namespace

const Registry<Measure>& measures() {
  static const Registry<Measure> registry = builtin_measures();
  return registry;
}

}  // namespace holdfast
