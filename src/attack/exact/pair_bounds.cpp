#include "pair_bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "holdfast/metric/swaps.h"

namespace holdfast::attack::exact {

using Eigen::Index;
using Eigen::VectorXd;

PairBounds::PairBounds(const CellProblem& problem)
    : top_(problem.top), features_(problem.x.size()), position_(static_cast<std::size_t>(problem.x.size())) {
  const auto count = static_cast<std::int32_t>(features_);
  if (of_order()) {
    const std::vector<double>& clean = problem.ordered;
    for (std::int32_t i = 0; i < count; ++i) {
      for (std::int32_t j = 0; j < count; ++j) {
        if (clean[static_cast<std::size_t>(i)] > clean[static_cast<std::size_t>(j)]) all_.push_back({i, j});
      }
    }
    return;
  }
  std::vector<std::int32_t> others;
  std::int32_t at_top = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const bool is_top = std::binary_search(top_.begin(), top_.end(), i);
    position_[static_cast<std::size_t>(i)] = is_top ? at_top++ : static_cast<std::int32_t>(others.size());
    if (!is_top) others.push_back(i);
  }
  for (const std::int64_t i : top_) {
    for (const std::int32_t j : others) all_.push_back({static_cast<std::int32_t>(i), j});
  }
}

void PairBounds::drop_decided(std::vector<Pair>& open, const Eigen::MatrixXd& rows, const Range& weights,
                              const VectorXd& rounding) {
  const VectorXd middle = (weights.low + weights.high) / 2, half = (weights.high - weights.low) / 2;
  const VectorXd gradient = rows.transpose() * middle;
  moving_.clear();
  for (Index h = 0; h < half.size(); ++h) {
    if (half[h] > 0) moving_.push_back(h);
  }
  influence_.assign(static_cast<std::size_t>(half.size()), 0);
  std::erase_if(open, [&](const Pair& pair) {
    const Index i = pair.above, j = pair.below;
    double together = 0, apart = 0;
    for (const Index h : moving_) {
      together += half[h] * std::abs(rows(h, i) - rows(h, j));
      apart += half[h] * std::abs(rows(h, i) + rows(h, j));
    }
    const double sign = gradient[i] < 0 ? -1 : 1;
    const double least = std::min(sign * (gradient[i] - gradient[j]) - together, sign * (gradient[i] + gradient[j]) - apart);
    if (least > rounding[i] + rounding[j]) return true;
    for (const Index h : moving_)
      influence_[static_cast<std::size_t>(h)] +=
          half[h] * std::min(std::abs(rows(h, i) - rows(h, j)), std::abs(rows(h, i) + rows(h, j)));
    return false;
  });
}

void PairBounds::drop_sure(std::vector<Pair>& open, const Compare& compare) const {
  std::erase_if(open, [&](const Pair& pair) {
    const Known known = compare(pair.above, pair.below);
    return of_order() ? known == Known::kAbove : in_top_order(known, pair.above, pair.below);
  });
}

std::int64_t PairBounds::level(const std::vector<Pair>& open) {
  if (of_order()) return highest() - static_cast<std::int64_t>(open.size());
  const auto k = static_cast<std::int64_t>(top_.size());
  const auto others = static_cast<std::size_t>(features_ - k);
  matrix_.assign(top_.size() * others, 0);
  for (const Pair& pair : open)
    matrix_[static_cast<std::size_t>(position_[static_cast<std::size_t>(pair.above)]) * others +
            static_cast<std::size_t>(position_[static_cast<std::size_t>(pair.below)])] = 1;
  return k - metric::most_swaps(matrix_, k, features_ - k);
}

std::int64_t PairBounds::highest() const {
  return static_cast<std::int64_t>(of_order() ? all_.size() : top_.size());
}

double PairBounds::least_value(std::int64_t level) const {
  const auto stay = static_cast<double>(level), most = static_cast<double>(highest());
  if (!of_order()) return stay / most;
  const double difference = 2 * stay - most, pairs = static_cast<double>(features_ * (features_ - 1)) / 2;
  return difference < 0 ? difference / most : difference / std::sqrt(most * pairs);
}

bool PairBounds::is_sure(const VectorXd& gradient, const Compare& compare) const {
  std::vector<Index> order(static_cast<std::size_t>(gradient.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return std::abs(gradient[a]) > std::abs(gradient[b]); });
  // The first `split` features against all others.
  const auto is_known = [&](std::size_t first, std::size_t split) {
    for (std::size_t a = first; a < split; ++a) {
      for (std::size_t b = split; b < order.size(); ++b) {
        const Known known = compare(order[a], order[b]);
        if (of_order() ? known == Known::kNothing : !in_top_order(known, order[a], order[b])) return false;
      }
    }
    return true;
  };
  if (!of_order()) return is_known(0, top_.size());
  for (std::size_t next = 0; next < order.size(); ++next) {
    if (!is_known(next, next + 1)) return false;
  }
  return true;
}

}  // namespace holdfast::attack::exact
