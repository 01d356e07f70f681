// How much the input gradient g changes along its own signs: an estimate of the Hessian's norm.
//
//     difference   ||g(x + kappa v) - g(x)|| / kappa       one forward and one input gradient more
//     hvp          ||H v||                                 one double backward more
// v = sign(g) / ||sign(g)||, held constant; c stays the class of x. Moosavi-Dezfooli et al., "Robustness via Curvature
// Regularization", CVPR 2019. kappa is the length of the whole step: the code of R2ET's authors moves each pixel by 3e-7, which
// is rounding in single precision. The difference also sees kinks of ReLU within kappa; the product sees none.
#pragma once

#include <string>
#include <vector>

#include "input_gradient.h"

namespace holdfast::train {

class SignCurvature {
 public:
  // Gives the options form and kappa.
  static std::vector<OptionSpec> options();
  explicit SignCurvature(const Options& options);

  // [B]; `gradient` is what made `point`.
  at::Tensor value(const InputGradient& gradient, Trainee& trainee, const ExplainedPoint& point) const;

 private:
  bool difference_;
  double kappa_;
};

}  // namespace holdfast::train
