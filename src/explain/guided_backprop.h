// The guided gradient, for guided_backprop and guided grad_cam.
#pragma once

#include <ATen/core/Tensor.h>

#include "layer_walk.h"

namespace holdfast::explain {

// The input's guided cotangent, given the logits'.
at::Tensor guided_gradient(const LayerValues& here, const at::Tensor& cotangent);

}  // namespace holdfast::explain
