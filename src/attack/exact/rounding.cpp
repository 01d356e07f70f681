#include "rounding.h"

#include <algorithm>
#include <cmath>

namespace holdfast::attack::exact {

using Eigen::VectorXd;

namespace {

double rounding_factor(double chain, double unit) {
  return chain * unit / (1 - chain * unit);
}

}  // namespace

Rounding::Rounding(const Chain& chain, const CellProblem& problem) : chain_(chain), problem_(problem) {
  VectorXd size = problem.x.cwiseAbs().array() + problem.radius;
  double length = 1;
  VectorXd mistake;  // of the values behind a layer whose units are on the wrong side by rounding
  for (const Chain::Layer& layer : chain.layers) {
    length += static_cast<double>(layer.weight.cols()) + 3;
    size = layer.weight_size * size + layer.bias_size;
    const VectorXd own = rounding_factor(length, chain.rounding) * size;
    mistake = mistake.size() == 0 ? own : VectorXd(layer.weight.cwiseAbs() * mistake + own);
    layers_.push_back(own);
  }
  margin_ = 4 * mistake.maxCoeff();
  std::size_t largest = 0;
  for (const auto& group : problem.groups) largest = std::max(largest, group.size());
  gradient_factor_ = rounding_factor(length + static_cast<double>(largest) + 10, chain.rounding);
  std::vector<VectorXd> slopes;
  for (std::size_t i = 0; i + 1 < chain.layers.size(); ++i)
    slopes.push_back(VectorXd::Constant(chain.layers[i].weight.rows(), std::max(1.0, std::abs(chain.layers[i].slope))));
  gradient_ = of_gradient(slopes);
}

VectorXd Rounding::of_gradient(const std::vector<VectorXd>& slopes) const {
  VectorXd sum = problem_.explained.cwiseAbs();
  for (std::size_t i = chain_.layers.size(); i-- > 0;) {
    sum = chain_.layers[i].weight_size.transpose() * sum;
    if (i > 0) sum = sum.cwiseProduct(slopes[i - 1].cwiseAbs());
  }
  for (const auto& group : problem_.groups) {
    double mean = 0;
    for (const std::int64_t i : group) mean += sum[i] / static_cast<double>(group.size());
    for (const std::int64_t i : group) sum[i] += mean;
  }
  return gradient_factor_ * sum;
}

}  // namespace holdfast::attack::exact
