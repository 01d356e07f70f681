// How far the network as float32 runs it can be from the one that is computed with here, anywhere in the ball:
//     g_m times the sum of the magnitudes of the products that enter a number, g_m = m u / (1 - m u)
// u is the unit of rounding, m the longest chain of operations on the way. Free of torch.
#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "cell_problem.h"

namespace holdfast::attack::exact {

class Rounding {
 public:
  Rounding(const Chain& chain, const CellProblem& problem);

  // Of a layer's pre-activations, [units].
  const Eigen::VectorXd& of_layer(std::size_t layer) const { return layers_[layer]; }
  // Of the logit of the predicted class above another one.
  double of_margin() const { return margin_; }
  // Of each feature's gradient, whichever units are on; and where each hidden layer's slopes are no larger than these.
  const Eigen::VectorXd& of_gradient() const { return gradient_; }
  Eigen::VectorXd of_gradient(const std::vector<Eigen::VectorXd>& slopes) const;

 private:
  const Chain& chain_;
  const CellProblem& problem_;
  std::vector<Eigen::VectorXd> layers_;
  double margin_ = 0, gradient_factor_ = 0;
  Eigen::VectorXd gradient_;
};

}  // namespace holdfast::attack::exact
