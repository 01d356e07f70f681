#include "methods.h"

namespace holdfast {
namespace {

Registry<Attack> builtin_attacks() {
  Registry<Attack> registry("attack");
  add_random(registry);
  add_random_sign(registry);
  add_er(registry);
  add_mse(registry);
  add_top_t(registry);
  add_mass_center(registry);
  add_target(registry);
  add_lens(registry);
  add_multi(registry);
  add_gauntlet(registry);
  return registry;
}

}  // namespace

const Registry<Attack>& attacks() {
  static const Registry<Attack> registry = builtin_attacks();
  return registry;
}

}  // namespace holdfast
