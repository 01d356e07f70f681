// The built-in metrics, one file each.
#pragma once

#include "holdfast/metric/metric.h"

namespace holdfast {

void add_top_k(Registry<Metric>& registry);

}  // namespace holdfast
