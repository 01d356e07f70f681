// Extreme eigenvalues of symmetric matrices that are known by their products alone, for a batch of matrices at once.
// Lanczos 1950, with full reorthogonalisation, so that no eigenvalue is found twice.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"

namespace holdfast::measure {

struct LanczosOptions {
  std::int64_t steps = 64;  // products at most; as many as a matrix has rows give all eigenvalues
  double tolerance = 1e-6;  // stop when every residual is below this share of the eigenvalue
  double noise = 1e-14;     // relative error of the products: what is smaller is no new direction
};

struct Extremes {
  at::Tensor magnitude;  // [B] largest |eigenvalue|
  at::Tensor largest;    // [B] largest eigenvalue
  at::Tensor residual;   // [B] an eigenvalue lies this near to the worse of the two
  at::Tensor direction;  // [B, n] unit vector that comes nearest to the eigenvector of `largest`
};

// `times`: [B, n] -> [B, n], in start's type. `start` [B, n]: random, so that it is orthogonal to no eigenvector.
Extremes lanczos(const std::function<at::Tensor(const at::Tensor&)>& times, const at::Tensor& start,
                 const LanczosOptions& options);

}  // namespace holdfast::measure
