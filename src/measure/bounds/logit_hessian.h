// Closed forms for piecewise-linear networks. Inside one linear region the logits are z = J x + b, so a function f of the logits
// has the Hessian
//     H = J^T Q J,   Q = d2 f / dz2         [classes x classes]
// whose non-zero eigenvalues are those of G^1/2 Q G^1/2, G = J J^T: one gradient a class and a small eigenproblem instead of
// one double backward an input element.
//     ce            Q = diag p - p p^T                                       SSR's W (diag p - p p^T) W^T
//     probability   Q = p_c ((e_c - p)(e_c - p)^T - (diag p - p p^T))        two classes: p (1-p) (1-2p) w w^T, w = J_c - J_other
//     logit         Q = 0
#pragma once

#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/measure/measure.h"

namespace holdfast::measure {

// As what_bends of its network (what_bends.h); a model whose operations are not known is taken to bend.
std::optional<std::string> what_bends(const Model& model);

// Eigenvalues of the Hessian other than zeros, [B, classes] double, ascending.
at::Tensor closed_eigenvalues(const MeasureTask& task, const std::string& quantity);

}  // namespace holdfast::measure
