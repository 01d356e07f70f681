// What a search of cells is given: the network as a chain of layers, and one sample with the region that its points may take.
#pragma once

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace holdfast::attack::exact {

// Linear layers with relu or leaky_relu between them; preprocessing is folded into the first.
struct Chain {
  struct Layer {
    Eigen::MatrixXd weight;  // [out, in]
    Eigen::VectorXd bias;
    double slope = 0;  // of the activation behind it, below 0; the last layer has none
    // Sums of the magnitudes of what is added up: differs from |weight| and |bias| where preprocessing was folded in.
    Eigen::MatrixXd weight_size;
    Eigen::VectorXd bias_size;
  };
  std::vector<Layer> layers;
  double rounding = 0x1p-24;  // of the type that the model runs in

  std::int64_t units() const;  // of all hidden layers
};

struct CellProblem {
  Eigen::VectorXd x, low, high;                        // the sample; bounds of the elements, infinite where there are none
  std::vector<char> is_free;                           // whether an element may move
  double radius = 0;                                   // of the l2 ball around x that holds all allowed points
  Eigen::Index predicted = 0;                          // the class that must stay
  double margin = 0;                                   // logit of that class above every other one
  Eigen::VectorXd explained;                           // weights of the logits whose gradient is ranked
  std::vector<std::vector<std::int64_t>> groups = {};  // columns whose mean is taken off the gradient
  std::vector<std::int64_t> top = {};                  // the clean top set, ascending
  std::vector<double> ordered = {};                    // in its place the clean map, where the order of all features counts
};

}  // namespace holdfast::attack::exact
