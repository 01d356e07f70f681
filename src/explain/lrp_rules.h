// How a layer hands its relevance down.
//
// A layer's output is z_j = sum_i a_i w_ij + b_j. Output j gives its relevance R_j to the inputs in proportion to z_ij = a_i
// w_ij, by one of these rules; z+ and z- are positive and negative parts, sums run over i and the bias.
//
//     epsilon     R_i = sum_j  z_ij / (z_j + epsilon sign z_j)  R_j
//     gamma       R_i = sum_j  (z_ij + gamma z+_ij) / (z_j + gamma z+_j)  R_j          where z_j >= 0; with z- where z_j < 0
//     alphabeta   R_i = sum_j  (alpha z+_ij / z+_j  -  beta z-_ij / z-_j)  R_j         beta = alpha - 1
//     flat        R_i = sum_j  R_j / (inputs that j sees, a Pad's too)                 first layer only
//     box         R_i = sum_j  (z_ij - l_i w+_ij - h_i w-_ij) / (the same summed)  R_j  first layer only; l <= a <= h
//
// The bias takes its share and keeps it (bias=absorb), or is left out of the sums (bias=ignore). Every denominator is kept away
// from 0 by epsilon. Parts are those of the products z_ij, so inputs may be negative; for a >= 0 they are a w+ and a w-.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"
#include "layer_walk.h"

namespace holdfast::explain {

struct LrpRule {
  enum class Kind { kEpsilon, kGamma, kAlphaBeta, kFlat, kBox };
  Kind kind = Kind::kEpsilon;
  double epsilon = 1e-6;
  double gamma = 0.25;
  double alpha = 2;
  bool absorb_bias = true;
};

// Relevance of a layer's input: of a Linear, a Conv2d, or a BatchNorm (epsilon only). For box: `low` and `high` of that input.
at::Tensor relevance_below(const LayerStep& step, const LrpRule& rule, const at::Tensor& low = {}, const at::Tensor& high = {});

// The epsilon rule before the input is multiplied in: relevance = a * multipliers.
at::Tensor epsilon_multipliers(const LayerStep& step, const LrpRule& rule);

// z + epsilon sign z, 0 counting as positive.
at::Tensor kept_from_zero(const at::Tensor& z, double epsilon);

}  // namespace holdfast::explain
