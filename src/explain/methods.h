// The built-in explainers, one file each.
#pragma once

#include "holdfast/explain/explainer.h"

namespace holdfast {

void add_saliency(Registry<Explainer>& registry);

}  // namespace holdfast
