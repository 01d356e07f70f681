// A blurred picture: what is left when its details are taken away.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/layout.h"

namespace holdfast::explain {

// A Gaussian blur of each channel, `inputs` [B, sample...] of a grid; `deviation` in pixels, 0: a tenth of the longer side. At
// the border the weights of what is inside are scaled to sum 1. Differentiable.
at::Tensor blurred(const at::Tensor& inputs, const Layout& layout, double deviation = 0);

}  // namespace holdfast::explain
