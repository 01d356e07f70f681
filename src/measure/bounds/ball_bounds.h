// Sound bounds on the first and second derivatives of a class's probability, or of its margin, over an l2 ball, for smooth
// feed-forward networks.
//
// Intervals of values, Jacobian and second derivatives are carried forward through the network: an affine layer W maps
// (center, radius) to (W center, |W| radius), an activation f at pre-activations a to
//     J' = f'(a) J        T' = f''(a) J J^T + f'(a) T
// with the exact ranges of f' and f'' (smooth_ranges.h). The first pre-activations are a = A x + b with |a' - a| <= eps
// ||A_m||_2; later ones are also held to |a' - a| <= eps ||J_m||_2. The end is the softmax of differences to the class's logit.
// A ball of radius 0 gives the exact derivatives; a larger one wider bounds, quickly so in deep networks.
//
// With a unit roundoff u, `rounding` bounds how far a gradient that is computed in that precision is from the exact one: values
// at the end of each affine layer are off by e, slopes therefore by max |f''| e, and the sums of the way back by g_m times the
// sum of their |products| (rounding.h). Layers are taken as their affine operations make them together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/model/model.h"
#include "smooth_ranges.h"

namespace holdfast::measure {

struct BallBounds {
  Enclosure gradient;        // [B, n]
  Enclosure hessian;         // [B, n, n]
  at::Tensor rounding = {};  // [B, n], where a unit roundoff was given
};

class SmoothChain {
 public:
  // Why there are no bounds for the model, as a phrase: "relu at node 'act'"; nothing when there are.
  static std::optional<std::string> what_prevents(const Model& model);

  // `sample` [1, ...]: for its shape. what_prevents(model) must be nothing.
  SmoothChain(const Model& model, const at::Tensor& sample);

  // Whose derivatives are bounded; the margin is for two classes.
  enum class Output { kProbability, kMargin };

  // `inputs` [B, ...], classes [B], radii [B] double.
  BallBounds bounds(const at::Tensor& inputs, const at::Tensor& classes, const at::Tensor& radii,
                    Output output = Output::kProbability, double unit = 0) const;
  std::int64_t classes() const { return layers_.back().weight.size(0); }
  // What bounds() takes for one sample.
  std::int64_t bytes_a_sample() const;

 private:
  struct Layer {
    at::Tensor weight, bias;                   // [out, in], [out]
    std::optional<op::Activation> activation;  // behind it; the last layer has none
  };
  // The longest chain of additions and multiplications from the logits back to a gradient.
  std::int64_t operations() const;

  std::vector<Layer> layers_;
};

}  // namespace holdfast::measure
