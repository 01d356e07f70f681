// Ranges of smooth activations and of their first two derivatives over intervals: the exact ones, since where each of them
// turns is known.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast::measure {

// Elementwise center +- radius, double.
struct Enclosure {
  at::Tensor center, radius;
};

// softplus, sigmoid, tanh, gelu, silu.
bool has_smooth_ranges(const op::Activation& activation);

// The activation (order 0) or its derivative of that order (1, 2) at x.
at::Tensor activation_derivative(const op::Activation& activation, int order, const at::Tensor& x);
// Everything it takes between `low` and `high`.
Enclosure activation_range(const op::Activation& activation, int order, const at::Tensor& low, const at::Tensor& high);

}  // namespace holdfast::measure
