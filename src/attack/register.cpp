#include "methods.h"

namespace holdfast {
namespace {

Registry<Attack> builtin_attacks() {
  Registry<Attack> registry("attack");
  add_random(registry);
  add_er(registry);
  return registry;
}

}  // namespace

const Registry<Attack>& attacks() {
  static const Registry<Attack> registry = builtin_attacks();
  return registry;
}

}  // namespace holdfast
