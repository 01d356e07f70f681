// The dataset `synthetic` and the function behind it, whose attributions are known exactly.
//
// With u = 2x - 1 for features x in [0,1] and a one-hot group g of L levels,
//     logit(x) = strength * (  sum w_i u_i                     features "linear_i"
//                            + sum a_j shape_j(u_j)            "additive_j": sin(pi u), u^2, and so on in turn
//                            + sum c_k u_ka u_kb               "pair_ka", "pair_kb": an interaction
//                            + 0                               "noise_i": of no influence
//                            + sum v_l g_l )                   "category=l", v summing to 0
// Weights have magnitudes in [1/2, 3/2] and random signs; they depend on the option `function` alone, so that datasets with other
// seeds are other samples of the same function. Features are uniform with correlated normal scores; a label is 1 with
// probability sigmoid(logit).
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/method.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"

namespace holdfast::data {

class SyntheticFunction {
 public:
  explicit SyntheticFunction(const Options& options);
  // From a call such as a loaded dataset's name: `synthetic(linear=2)`.
  static SyntheticFunction of(const std::string& call);

  const Schema& schema() const { return schema_; }
  // True for features that the logit depends on.
  at::Tensor relevant() const;

  // x is [N, n], float or double; so is the result.
  at::Tensor logits(const at::Tensor& x) const;  // [N]
  // The gradient of the logit: [N, n].
  at::Tensor gradients(const at::Tensor& x) const;
  // What each feature adds to the logit compared with baseline(): [N, n], rows summing to logit(x) - logit(baseline). An
  // interaction is shared evenly. These are at once the integrated gradients along the straight line and the Shapley values.
  at::Tensor contributions(const at::Tensor& x) const;
  // Every feature in the middle, every level at 1 / levels: [n], double.
  at::Tensor baseline() const;

 private:
  struct Parts;  // x cut into the kinds of features
  Parts cut(const at::Tensor& x) const;

  std::int64_t linear_, additive_, pairs_, noise_, levels_;
  at::Tensor linear_weights_, additive_weights_, pair_weights_, level_weights_;  // double, strength included
  Schema schema_;
};

}  // namespace holdfast::data
