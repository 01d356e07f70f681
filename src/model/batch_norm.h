// Batch normalisation in evaluation mode.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast {

// (x - mean) / sqrt(variance + epsilon) * weight + bias over dimension 1, with the running statistics; differentiable any
// number of times in x, weight and bias. One fused pass forward, one multiplication backward.
at::Tensor batch_norm_evaluation(const op::BatchNorm& norm, const at::Tensor& x);

}  // namespace holdfast
