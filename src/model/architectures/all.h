// One function for each built-in architecture; architectures() calls them.
#pragma once

#include "holdfast/model/model.h"

namespace holdfast {

void register_linear(Registry<Architecture>& registry);
void register_mlp(Registry<Architecture>& registry);
void register_cnn_small(Registry<Architecture>& registry);

}  // namespace holdfast
