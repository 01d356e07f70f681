// Batch normalisation folded into the layer before it, so that relevance meets one linear layer instead of two.
#pragma once

#include "holdfast/model/network.h"

namespace holdfast::explain {

// The same function with every batch normalisation that alone reads a convolution or a dense layer made part of it:
// weight w s, bias (b - mean) s + shift, s = scale / sqrt(variance + epsilon). Other nodes share their tensors with `network`.
// A function of the weights that autograd can differentiate.
Network fold_batch_norm(const Network& network);

}  // namespace holdfast::explain
