// Bounds on the gradient of the margin over a ball: they hold at every point that is tried, at any depth.
#include <cmath>

#include <gtest/gtest.h>

#include "ball_case.h"
#include "holdfast/measure/margin_bounds.h"

namespace holdfast::measure {
namespace {

using testing_support::chain_network;
using testing_support::normal_tensor;
using testing_support::points_in_ball;

at::Tensor margin_gradient(const Network& network, const at::Tensor& inputs) {
  const at::Tensor x = inputs.detach().requires_grad_();
  const at::Tensor logits = network.logits(x);
  return torch::autograd::grad({(logits.select(1, 1) - logits.select(1, 0)).sum()}, {x})[0];
}

TEST(MarginBounds, HoldEverywhereInTheBallAtAnyDepth) {
  for (const op::Activation& activation :
       {op::Activation{}, op::Activation{op::Activation::Kind::kLeakyRelu, 0.2}, testing_support::softplus(3)}) {
    for (const auto& hidden : std::vector<std::vector<std::int64_t>>{{}, {5}, {5, 4}, {6, 5, 4}}) {
      const Network network = chain_network(activation, hidden, 100 + hidden.size());
      ASSERT_FALSE(MarginChain::what_prevents(network));
      const at::Tensor inputs = normal_tensor({4, 6}, 8, at::kDouble);
      const double radius = 0.3;
      const MarginBounds bounds = MarginChain(network).bounds(inputs.unsqueeze(0), radius);
      EXPECT_TRUE(at::allclose(bounds.gradient[0], margin_gradient(network, inputs), 1e-9, 1e-10))
          << to_string(activation) << hidden.size();
      const at::Tensor pairs = pair_lower_bounds({.rows = bounds.rows,
                                                  .middle = bounds.middle,
                                                  .half = bounds.half,
                                                  .signs = at::where(bounds.gradient < 0, -1.0, 1.0)})[0];
      double slack = INFINITY;
      for (std::int64_t b = 0; b < 4; ++b) {
        const at::Tensor gradients = margin_gradient(network, points_in_ball(inputs[b], radius, 400, 77));
        const at::Tensor middle = at::matmul(bounds.middle[0][b], bounds.rows[0]);
        const at::Tensor half = at::matmul(bounds.half[0][b], bounds.rows[0].abs());
        const at::Tensor left = half - (gradients - middle).abs();
        EXPECT_GE(left.min().item<double>(), -1e-9) << to_string(activation) << hidden.size();
        slack = std::min(slack, left.min().item<double>() / (half.max().item<double>() + 1e-12));
        const at::Tensor magnitudes = gradients.abs(), gaps = magnitudes.unsqueeze(2) - magnitudes.unsqueeze(1);
        EXPECT_GE((gaps - pairs[b]).min().item<double>(), -1e-9) << to_string(activation) << hidden.size();
      }
      if (hidden.size() == 1) {
        EXPECT_LT(slack, 0.7) << "the bounds of one hidden layer are nearly met by some point";
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::measure
