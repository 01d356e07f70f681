// The settings that papers used for their attacks, as presets.
#pragma once

#include <vector>

#include "holdfast/core/method.h"

namespace holdfast::attack {

// mnist, fashion_mnist, gtsrb, flower and imagenet: steps, step_size and, where `with_t`, t. Sizes that the paper gives on the
// 0-255 scale are in units of [0, 1]. `more` is set beside them in each. Epsilon belongs to the threat; the help names the
// paper's.
std::vector<Preset> lens_presets(bool with_t, const std::vector<std::pair<std::string, OptionValue>>& more = {});

// tabular, cifar10 and image: steps and step_size of er and mse.
std::vector<Preset> r2et_presets();

}  // namespace holdfast::attack
