// Derivatives of a network's output against finite differences, in double precision.
#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "holdfast/core/torch.h"
#include "support/small_models.h"

namespace holdfast::testing_support {
using namespace model;

using Scalar = std::function<at::Tensor(const at::Tensor&)>;

inline at::Tensor gradient_of(const Scalar& function, const at::Tensor& x, bool create_graph = false) {
  const at::Tensor leaf = create_graph ? x : x.detach().requires_grad_(true);
  return torch::autograd::grad({function(leaf)}, {leaf}, {}, /*retain_graph=*/create_graph, create_graph)[0];
}

// The gradient along a random direction, and the gradient of that, each against the central difference of the one before.
// `x` must lie further than 1e-4 from any kink.
inline void expect_two_derivatives(const Scalar& function, const at::Tensor& x, double tolerance = 1e-6) {
  constexpr double kStep = 1e-5;
  const at::Tensor direction = normal_tensor(x.sizes(), 77, at::kDouble);
  const auto along = [&](const at::Tensor& at_x, bool create_graph) {
    return (gradient_of(function, at_x, create_graph) * direction).sum();
  };

  const double slope = along(x, false).item<double>();
  const double difference = (function(x + kStep * direction) - function(x - kStep * direction)).item<double>() / (2 * kStep);
  EXPECT_NEAR(slope, difference, tolerance * (1 + std::abs(difference)));

  const at::Tensor leaf = x.detach().requires_grad_(true);
  const at::Tensor inner = along(leaf, true);
  double curvature = 0;
  if (inner.requires_grad()) {
    const at::Tensor second = torch::autograd::grad({inner}, {leaf}, {}, false, false, /*allow_unused=*/true)[0];
    if (second.defined()) curvature = (second * direction).sum().item<double>();
  }
  const double second_difference =
      (along(x + kStep * direction, false) - along(x - kStep * direction, false)).item<double>() / (2 * kStep);
  EXPECT_NEAR(curvature, second_difference, tolerance * (1 + std::abs(second_difference)));
}

}  // namespace holdfast::testing_support
