// One function a paper adds its experiments to the registry, in the order of `list`.
#pragma once

#include "holdfast/experiment/reproduce.h"

namespace holdfast {

void add_r2et_experiments(Registry<Experiment>& registry);  // r2et/
void add_lens_experiments(Registry<Experiment>& registry);  // lens/

}  // namespace holdfast
