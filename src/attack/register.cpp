// The list of attacks, one line each: the namespace of the attack's file. `holdfast list` shows them in this order.
#include "holdfast/attack/attack.h"
#include "holdfast/core/method_list.h"

namespace holdfast::attack {

#define HOLDFAST_ATTACKS(METHOD) \
  METHOD(Attack, random)         \
  METHOD(Attack, random_sign)    \
  METHOD(Attack, er)             \
  METHOD(Attack, mse)            \
  METHOD(Attack, top_t)          \
  METHOD(Attack, mass_center)    \
  METHOD(Attack, target)         \
  METHOD(Attack, lens_attack)    \
  METHOD(Attack, multi)          \
  METHOD(Attack, gauntlet)       \
  METHOD(Attack, exact)

HOLDFAST_REGISTRY(Attack, attacks, "attack", HOLDFAST_ATTACKS)

}  // namespace holdfast::attack
