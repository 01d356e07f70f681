// What pairs of features say about a metric on a part of the ball. A pair is a feature i and another one j that the clean map has
// below it, bounded by
//     |G_i| - |G_j|  >=  min over t = -1, 1 of  s_i (Gmid_i - t Gmid_j) - sum_h half_h |R_hi - t R_hj|
// G = sum_h a_h R_h is the ranked gradient; the weights a_h lie within half_h of their middle. A pair whose bound is above 0
// stays as it is. Of the others, which are open, two kinds of metrics are bounded:
//     the top k     pairs of a top feature and another one. If d of the top leave, d others stand above all of them
//                   (metric/swaps.h): the level is the number of features that surely stay, and k of them are P@k = 1
//     the order     all pairs that are not tied in the clean map. The level is the number A of those that surely stay, of M. With
//                   all others turned round Kendall's tau-b has the numerator 2A - M; its denominator sqrt(M (P - Y)) lies
//                   between M, where what was tied in the clean map is tied again, and sqrt(M P); P are all pairs, Y the tied
//                   ones
// Free of torch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

#include "part.h"

namespace holdfast::attack::exact {

// Two features of which the clean map has the first above the second.
struct Pair {
  std::int32_t above, below;
};

class PairBounds {
 public:
  explicit PairBounds(const CellProblem& problem);

  const std::vector<Pair>& all() const { return all_; }
  // Drops the pairs that cannot change. `rows` [units, features] are R, `rounding` [features] is what it can do to G. What is
  // left says how much each unit has to do with it: influence().
  void drop_decided(std::vector<Pair>& open, const Eigen::MatrixXd& rows, const Range& weights, const Eigen::VectorXd& rounding);
  const std::vector<double>& influence() const { return influence_; }
  // What is known of a feature and another one where the gradient is known: surely above, exactly equal, or neither.
  enum class Known { kAbove, kEqual, kNothing };
  using Compare = std::function<Known(Eigen::Index, Eigen::Index)>;
  // Drops the pairs that surely stay. Of equal features a top k takes the lower one.
  void drop_sure(std::vector<Pair>& open, const Compare& compare) const;

  // How much surely stays while only these pairs may change, from 0 to highest(); and the least that the metric can then be.
  std::int64_t level(const std::vector<Pair>& open);
  std::int64_t highest() const;
  double least_value(std::int64_t level) const;

  // Whether the order of the map's features is sure as far as the metric reads it.
  bool is_sure(const Eigen::VectorXd& gradient, const Compare& compare) const;

 private:
  bool of_order() const { return top_.empty(); }
  static bool in_top_order(Known known, Eigen::Index i, Eigen::Index j) {
    return known == Known::kAbove || (known == Known::kEqual && i < j);
  }

  std::vector<std::int64_t> top_;
  std::int64_t features_;
  std::vector<Pair> all_;
  std::vector<std::int32_t> position_;  // of each feature among the top ones or among the others
  // Memory that is used again.
  std::vector<std::int8_t> matrix_;
  std::vector<double> influence_;
  std::vector<Eigen::Index> moving_;
};

}  // namespace holdfast::attack::exact
