// Chains of layers and points in balls, for tests of bounds over balls.
#pragma once

#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "support/small_models.h"

namespace holdfast::testing_support {
using namespace measure;

// Six features scaled and shifted, hidden layers of these widths, two classes.
inline Network chain_network(const op::Activation& activation, const std::vector<std::int64_t>& hidden, std::uint64_t seed) {
  Network network;
  network.add("input", op::Input{});
  network.add("scale",
              op::Affine{normal_tensor({6}, seed + 50, at::kDouble).abs() + 0.5, normal_tensor({6}, seed + 51, at::kDouble)});
  std::int64_t in = 6;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    network.add(fmt::format("hidden{}", i),
                op::Linear{normal_tensor({hidden[i], in}, seed + 2 * i, at::kDouble).div_(std::sqrt(in)),
                           normal_tensor({hidden[i]}, seed + 2 * i + 1, at::kDouble).mul_(0.3)});
    network.add(fmt::format("act{}", i), activation);
    in = hidden[i];
  }
  network.add("out", op::Linear{normal_tensor({2, in}, seed + 30, at::kDouble), at::zeros({2}, at::kDouble)});
  return network;
}

// Points in the ball, most of them on its surface, where bounds break first.
inline at::Tensor points_in_ball(const at::Tensor& center, double radius, std::int64_t count, std::uint64_t seed) {
  const at::Tensor direction = normal_tensor({count, center.numel()}, seed, at::kDouble);
  const at::Tensor length = at::linspace(0.3, 2, count, at::kDouble).clamp_max(1).unsqueeze(1) * radius;
  return center + direction / direction.norm(2, 1, true) * length;
}

}  // namespace holdfast::testing_support
