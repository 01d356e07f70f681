// The built-in measures, one file each.
#pragma once

#include "holdfast/measure/measure.h"

namespace holdfast {

void add_thickness(Registry<Measure>& registry);

}  // namespace holdfast
