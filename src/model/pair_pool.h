// The maximum over windows of 2 x 2 that do not overlap, which nearly every small network has. Torch's own kernel is a good part
// of cnn_chen's passes; this one gives the same values and gradients, of any order, in less time.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast {

// Whether pool_pairs() computes this: 2 x 2, stride 2, nothing else, a contiguous batch of images on the processor.
bool pools_pairs(const op::MaxPool2d& pool, const at::Tensor& x);
// [B, C, H, W] -> [B, C, H/2, W/2]; a row or column that is left over is dropped.
at::Tensor pool_pairs(const at::Tensor& x);

}  // namespace holdfast
