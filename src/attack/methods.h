// The built-in attacks, one file each.
#pragma once

#include "holdfast/attack/attack.h"

namespace holdfast {

void add_random(Registry<Attack>& registry);
void add_random_sign(Registry<Attack>& registry);
void add_er(Registry<Attack>& registry);
void add_mse(Registry<Attack>& registry);
void add_top_t(Registry<Attack>& registry);
void add_mass_center(Registry<Attack>& registry);
void add_target(Registry<Attack>& registry);
void add_lens(Registry<Attack>& registry);
void add_multi(Registry<Attack>& registry);
void add_gauntlet(Registry<Attack>& registry);

}  // namespace holdfast
