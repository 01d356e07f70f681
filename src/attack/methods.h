// The built-in attacks, one file each.
#pragma once

#include "holdfast/attack/attack.h"

namespace holdfast {

void add_random(Registry<Attack>& registry);
void add_er(Registry<Attack>& registry);

}  // namespace holdfast
