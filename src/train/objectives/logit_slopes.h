// Closed forms of the Hessian by the input for piecewise-linear networks, differentiable by the parameters.
//
// Inside one linear region the logits are z = J x + b, so a function f of them has the Hessian J^T Q J, Q = d2 f / dz2. Adding a
// constant to all logits changes neither probability nor cross-entropy: Q 1 = 0, and J may be taken as the slopes of z_j -
// z_last, one input gradient a class but the last.
//     ce            Q = diag p - p p^T
//     probability   Q = p_c ((e_c - p)(e_c - p)^T - (diag p - p p^T))      two classes: p (1-p) (1-2p)
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/train/objective.h"

namespace holdfast::train {

struct LogitSlopes {
  at::Tensor logits;  // [B, classes]
  at::Tensor slopes;  // [B, classes - 1, elements]: of z_j - z_last
};

// Makes one forward pass and classes - 1 input gradients.
LogitSlopes logit_slopes(Trainee& trainee, const at::Tensor& inputs);

// ||H||_F of the probability of `classes` [B], [B].
at::Tensor probability_hessian_norm(const LogitSlopes& at, const at::Tensor& classes);
// The largest eigenvalue of the cross-entropy's Hessian, [B]: W (diag p - p p^T) W^T of SSR. It does not depend on the label.
at::Tensor largest_ce_eigenvalue(const LogitSlopes& at);

// Whether the closed forms hold; false where the inside of the model is not known.
bool is_piecewise_linear(const Trainee& trainee);

}  // namespace holdfast::train
