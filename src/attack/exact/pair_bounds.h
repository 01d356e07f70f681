// Which features of the clean top can have left it on a part of the ball: pairs of a top feature i and another one j, bounded by
//     |G_i| - |G_j|  >=  min over t = -1, 1 of  s_i (Gmid_i - t Gmid_j) - sum_h half_h |R_hi - t R_hj|
// G = sum_h a_h R_h is the ranked gradient; the weights a_h lie within half_h of their middle. Free of torch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

#include "part.h"

namespace holdfast::attack::exact {

// Positions among the top features and among the others.
struct Pair {
  std::int32_t above, below;
};

class PairBounds {
 public:
  // `top`, ascending, of `features`.
  PairBounds(std::vector<std::int64_t> top, std::int64_t features);

  std::vector<Pair> all() const;
  // Drops the pairs that cannot change. `rows` [units, features] are R, `rounding` [features] is what it can do to G. What is
  // left says how much each unit has to do with it: influence().
  void drop_decided(std::vector<Pair>& open, const Eigen::MatrixXd& rows, const Range& weights, const Eigen::VectorXd& rounding);
  const std::vector<double>& influence() const { return influence_; }
  // Drops the pairs of which the first feature is surely above the second.
  using SurelyAbove = std::function<bool(Eigen::Index, Eigen::Index)>;
  void drop_sure(std::vector<Pair>& open, const SurelyAbove& surely_above) const;
  // At least so many of the top features stay.
  std::int64_t least_kept(const std::vector<Pair>& open);

 private:
  std::vector<std::int64_t> top_, others_;
  // Memory that is used again.
  std::vector<std::int8_t> matrix_;
  std::vector<double> influence_;
  std::vector<Eigen::Index> moving_;
};

}  // namespace holdfast::attack::exact
