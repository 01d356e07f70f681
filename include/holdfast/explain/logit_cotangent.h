// What is explained, as a cotangent on the logits: the map is its pullback through the model.
//
//     logit         1 at the class c
//     probability   d p_c / d z     p_c (1 - p_c) at c, -p_c p_j elsewhere
//     ce            d -log p_c / d z     -(1 - p_c) at c, p_j elsewhere
//
// A saturated softmax makes the last two underflow, and with them every map and every attack direction. Their scale
// is therefore kept apart: with m the largest p_j, j != c, the cotangent is divided by m (by m p_c for a probability), held
// constant, and the logarithm of the divisor goes to log_scale. What is left is of order one for any logits:
//     probability   q (sum_j r_j at c, -r_j elsewhere)     q = p_c / const(p_c), r_j = p_j / const(m)
//     ce              (-sum_j r_j at c, r_j elsewhere)
// Since the divisor is constant, derivatives of the scaled map are derivatives of the map, divided by it.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"

namespace holdfast::explain {

enum class ExplainedQuantity { kProbability, kLogit, kCrossEntropy };
// "probability", "logit", "ce".
ExplainedQuantity parse_explained_quantity(const std::string& text);

struct LogitCotangent {
  at::Tensor value;      // [B, classes]; a function of the logits that autograd can differentiate
  at::Tensor log_scale;  // [B], constant
};

// `targets` [B] int64. A model of one output gives a value, which is explained itself, whatever the quantity.
LogitCotangent logit_cotangent(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity);

// The same, made of tensor operations: for other devices than the CPU, for derivatives of third and higher order, and to
// hold the other one against.
LogitCotangent composed_logit_cotangent(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity);

}  // namespace holdfast::explain
