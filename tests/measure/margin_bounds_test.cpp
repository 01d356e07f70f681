// Bounds on the gradient of the margin over a ball: they hold at every point that is tried, at any depth.
#include <cmath>

#include <gtest/gtest.h>

#include "../../src/measure/bounds/pair_bounds.h"

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

// Loops over the pairs that count, against tensors of all pairs.
TEST(PairBounds, LoopsGiveWhatTensorsDo) {
  const std::int64_t samples = 5, units = 7, n = 11;
  const at::Tensor rows = normal_tensor({units, n}, 1, at::kDouble), middle = normal_tensor({samples, units}, 2, at::kDouble),
                   half = normal_tensor({samples, units}, 3, at::kDouble).abs();
  const at::Tensor gradient = at::matmul(middle, rows), signs = at::where(gradient < 0, -1.0, 1.0);
  const RankedPairs pairs = ranked_pairs({.k = 3}, gradient);
  const auto of_pairs = [&](const at::Tensor& all) {
    const at::Tensor above = all.gather(1, pairs.above.unsqueeze(2).expand({-1, -1, n}));
    return above.gather(2, pairs.below.unsqueeze(1).expand({-1, 3, -1}));
  };
  const at::Tensor all = pair_lower_bounds(
      {.rows = rows.unsqueeze(0), .middle = middle.unsqueeze(0), .half = half.unsqueeze(0), .signs = signs.unsqueeze(0)})[0];
  EXPECT_TRUE(at::allclose(interval_gaps(pairs, rows, middle, half, signs), of_pairs(all), 1e-12, 1e-12));

  const Enclosure hessian{normal_tensor({samples, n, n}, 4, at::kDouble), normal_tensor({samples, n, n}, 5, at::kDouble).abs()};
  const PairTerms terms = pair_terms(pairs, gradient, hessian);
  const at::Tensor turned = hessian.center * signs.unsqueeze(2);
  const at::Tensor spread = (hessian.radius.unsqueeze(2) + hessian.radius.unsqueeze(1)).norm(2, 3);
  const at::Tensor together = (turned.unsqueeze(2) - turned.unsqueeze(1)).norm(2, 3) + spread,
                   apart = (turned.unsqueeze(2) + turned.unsqueeze(1)).norm(2, 3) + spread;
  EXPECT_TRUE(at::allclose(terms.together, of_pairs(together), 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(terms.apart, of_pairs(apart), 1e-12, 1e-12));
}

}  // namespace
}  // namespace holdfast::measure
