// Bounds on the gradient of the margin z_1 - z_0 over an l2 ball, for chains of linear layers and activations with two classes;
// differentiable by the parameters. They need no second derivative, so kinks are no obstacle; where a network is smooth
// ball_bounds.h has bounds on those as well.
//
//     G(x') = sum_h a_h(x') W_h          W_h: row h of the first linear layer, preprocessing folded in
// Pre-activations of the first layer move by at most radius * ||W_h||; those of later layers are bounded by interval arithmetic.
// They bound the activations' derivatives, and going back from the logits, products of these with the weights bound a_h. With one
// hidden layer a_h = v_h act'(z_h), v the weights of the margin, and the bounds are the exact range.
//
// With a unit roundoff the bounds are about what is computed in that precision: pre-activations are as much wider, and `products`
// says what the last sums may be off by.
//
// Activations must have derivatives that rise with their argument: relu, leaky_relu, softplus. A kink's derivative is a step
// in the bounds, and for training the slope of a sigmoid as wide as the reach of the ball (a straight-through estimate).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/model/network.h"

namespace holdfast::measure {

// The bounds of M networks (a stack, or one) at b samples each.
struct MarginBounds {
  at::Tensor rows;          // [M, units, n]: W_h
  at::Tensor middle, half;  // [M, b, units]: a_h lies in middle -+ half over the ball
  at::Tensor gradient;      // [M, b, n]: G at x itself
  at::Tensor ceiling;       // [M, units]: |a_h| is no larger at any input, slopes of at most 1 taken for granted
  at::Tensor steadiness;  // [M, b, units of all layers]: pre-activations over how far they can move; beyond 1 no kink is crossed
  at::Tensor products = {};  // [M, b, n]: the most that the |products| in G sum to over the ball; undefined where unit is 0
};

class MarginChain {
 public:
  struct Range {
    at::Tensor low, high;
  };

  // Why there are no bounds for the network, as a phrase: "tanh at node 'act'"; nothing when there are.
  static std::optional<std::string> what_prevents(const Network& network);

  // Reads the weights as they are now. what_prevents(network) must be nothing.
  explicit MarginChain(const Network& network);

  std::int64_t networks() const { return layers_.front().weight.size(0); }
  std::int64_t units() const { return layers_.front().weight.size(1); }  // of the first layer
  // `inputs` [M, b, n]. `unit`: the unit roundoff of the precision that gradients are computed in; 0: they are exact.
  // `moving` [n]: 1 for the columns that the ball moves, 0 for those that stay; undefined: it moves all.
  MarginBounds bounds(const at::Tensor& inputs, double radius, double unit = 0, const at::Tensor& moving = {}) const;
  // The longest chain of additions and multiplications from the logits back to a gradient.
  std::int64_t operations() const;

 private:
  struct Layer {
    at::Tensor weight, bias;                   // [M, out, in], [M, 1, out]
    at::Tensor bias_size;                      // [M, 1, out]: the sum of the |products| in the bias
    std::optional<op::Activation> activation;  // behind it; the last layer has none
  };
  // The slopes of each activation, [M, b, units].
  struct Slopes {
    std::vector<at::Tensor> exact, steadiness;
    std::vector<Range> bounds;
  };
  Slopes slopes(const at::Tensor& inputs, double radius, double unit, const at::Tensor& moving) const;

  std::vector<Layer> layers_;
};

// What bounds of pairs are made of: a MarginBounds, or some of its samples, with rows projected where gradients are.
struct PairFactors {
  at::Tensor rows;          // [M, units, n]
  at::Tensor middle, half;  // [M, b, units]
  at::Tensor signs;         // [M, b, n], 1 or -1: of the gradient at x
};

// |G_i| - |G_j| is nowhere in the ball below
//     LB_ij = min over t = -1, 1 of  s_i (Gmid_i - t Gmid_j) - sum_h half_h |W_hi - t W_hj|,     Gmid = sum_h middle_h W_h
// because |a| >= s a and |a| is a or -a. Bounded jointly: units that move both features alike cancel. [M, b, n, n]; i is
// dimension 2, j dimension 3.
at::Tensor pair_lower_bounds(const PairFactors& factors);

}  // namespace holdfast::measure
