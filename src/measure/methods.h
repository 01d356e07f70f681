// The built-in measures, one file each.
#pragma once

#include "holdfast/measure/measure.h"

namespace holdfast {

void add_thickness(Registry<Measure>& registry);
void add_thickness_bounds(Registry<Measure>& registry);
void add_no_swap_radius(Registry<Measure>& registry);
void add_certified_overlap(Registry<Measure>& registry);
void add_curvature(Registry<Measure>& registry);
void add_comp_suff(Registry<Measure>& registry);
void add_deletion_insertion(Registry<Measure>& registry);
void add_dffot(Registry<Measure>& registry);
void add_local_lipschitz(Registry<Measure>& registry);
void add_relative_stability(Registry<Measure>& registry);
void add_sensitivity(Registry<Measure>& registry);

}  // namespace holdfast
