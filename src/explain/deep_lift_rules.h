// The rescale rule, for every operation of a network.
//
// A node gets the multipliers m of its value y and gives those of its operands x, such that
//     sum of m_x (x - x0) = sum of m (y - y0)          x0, y0: the same values in the run at the baseline
// holds exactly. Then it holds for the whole network, and the map is complete.
//
//     linear operations          their vector-Jacobian product, the same at every point
//     activations, abs           m (y - y0) / (x - x0), element by element; the derivative where x and x0 are (nearly) the same
//     products, matrix products  the vector-Jacobian product half-way: a b - a0 b0 = (a - a0) (b + b0)/2 + (b - b0) (a + a0)/2
//     max pooling                a window's y - y0 goes to the element that is its maximum, at the input if y > y0, at the
//                                baseline otherwise: in both cases x differs from x0 there, with the sign of y - y0
//     standardisation            centring is linear; of u s (s the inverse deviation) s (u - u0) + u0 (s - s0), s rescaled as a
//                                function of the variance. Against a flat baseline, whose deviation is arbitrary, s counts as
//                                fixed
//     graph normalisation        a r_i r_j as products, r = d^-1/2 and |a| in the degrees d rescaled
//     distance of two sides      |u - v|: abs of a linear operation
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "layer_walk.h"

namespace holdfast::explain {

// `reference` is a run of the same network with as many rows as the step's, or with those of one sample for all.
std::vector<at::Tensor> rescale(const LayerStep& step, const LayerValues& reference);

}  // namespace holdfast::explain
