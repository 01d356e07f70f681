// Cross-entropy and c . I(x), I the explained output's gradient and c a constant, of a chain of linear layers and relu or
// softplus: in closed form, with one step of the graph in place of a recorded gradient and its double backward.
//
//     z_l = W_l a_(l-1) + b_l     a_l = s(z_l)     a_0 = x     z_L the logits     q their cotangent (gap_rows.h)
//     d_L = q      d_l = (W_(l+1)^T d_(l+1)) s'(z_l)                  I = W_1^T d_1            the gradient
//     t_0 = c      u_l = W_l t_(l-1)      t_l = s'(z_l) u_l           c . I = q . u_L          c pushed forward
// With e_l and f_l the loss's derivatives by z_l and u_l, one way back gives the parameters' gradients:
//     E = W_(l+1)^T e_(l+1)     F = W_(l+1)^T f_(l+1)     e_l = E s'(z_l) + F u_l s''(z_l)     f_l = F s'(z_l)
//     by W_l: e_l a_(l-1)^T + f_l t_(l-1)^T               by b_l: e_l
// On small networks a step is mostly the cost of recording: this one costs two thirds of the recorded one (input_gradient.h),
// which is the reference and serves all other models.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/logit_cotangent.h"
#include "holdfast/train/objective.h"

namespace holdfast::train {

class ChainGap {
 public:
  // Whether the trainee is such a chain, or a stack of them, on the CPU.
  static bool fits(const Trainee& trainee, const TrainBatch& batch);

  // The probability of the predicted class or the cross-entropy of the label is explained.
  ChainGap(const Network& network, const TrainBatch& batch, ExplainedQuantity quantity);

  // Gives I(x), [B, n], a constant.
  const at::Tensor& gradient() const;

  struct Terms {
    at::Tensor ce, product;  // [B]; differentiable once, by the parameters
  };
  Terms terms(const at::Tensor& c) const;

 private:
  struct Pass;
  class Step;
  std::shared_ptr<const Pass> pass_;
};

}  // namespace holdfast::train
