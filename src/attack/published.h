// The settings that the LENS paper used for its attacks, as presets.
#pragma once

#include <vector>

#include "holdfast/core/method.h"

namespace holdfast::attack {

// mnist, fashion_mnist, gtsrb, flower and imagenet: steps, step_size and, where `with_t`, t. Sizes that the paper gives on the
// 0-255 scale are in units of [0, 1]. `more` is set beside them in each. Epsilon belongs to the threat; the help names the
// paper's.
std::vector<Preset> lens_presets(bool with_t, const std::vector<std::pair<std::string, OptionValue>>& more = {});

}  // namespace holdfast::attack
