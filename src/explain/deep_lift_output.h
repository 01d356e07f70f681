// The last nonlinearity of deep_lift, from the logits to what is explained, under the rescale rule.
//
// With d_j = z_j - z_c and T = 1 + sum over j != c of exp(d_j), p_c = 1 / T. Rescaling exp, the reciprocal and the logarithm one
// after the other gives multipliers that sum to 0 (a constant on all logits moves nothing, as it should) and that are complete:
//     probability   -p_c p0_c L_j             at j != c          L_j = (exp(d_j) - exp(d0_j)) / (d_j - d0_j)
//     ce             L_j / L(T, T0)           at j != c          L(T, T0) = (T - T0) / (log T - log T0)
// and minus their sum at c. L is the logarithmic mean; it tends to the derivative where both points are the same. For two classes
// this is the rescale rule of the logistic function of the margin.
//
// Like those of logit_cotangent.h, multipliers of a saturated softmax underflow; the largest one's logarithm is kept apart as the
// scale.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain {

// Multipliers of the logits [B, classes]; `reference` [B or 1, classes] are the logits at the baseline.
LogitCotangent rescaled_cotangent(const at::Tensor& logits, const at::Tensor& reference, const at::Tensor& targets,
                                  ExplainedQuantity quantity);

}  // namespace holdfast::explain
