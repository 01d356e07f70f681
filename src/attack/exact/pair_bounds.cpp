#include "pair_bounds.h"

#include <algorithm>
#include <cmath>

#include "holdfast/metric/swaps.h"

namespace holdfast::attack::exact {

using Eigen::Index;
using Eigen::VectorXd;

PairBounds::PairBounds(std::vector<std::int64_t> top, std::int64_t features) : top_(std::move(top)) {
  for (std::int64_t i = 0; i < features; ++i) {
    if (!std::binary_search(top_.begin(), top_.end(), i)) others_.push_back(i);
  }
}

std::vector<Pair> PairBounds::all() const {
  std::vector<Pair> pairs;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(top_.size()); ++i) {
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(others_.size()); ++j) pairs.push_back({i, j});
  }
  return pairs;
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
    const Index i = top_[static_cast<std::size_t>(pair.above)], j = others_[static_cast<std::size_t>(pair.below)];
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

void PairBounds::drop_sure(std::vector<Pair>& open, const SurelyAbove& surely_above) const {
  std::erase_if(open, [&](const Pair& pair) {
    return surely_above(top_[static_cast<std::size_t>(pair.above)], others_[static_cast<std::size_t>(pair.below)]);
  });
}

std::int64_t PairBounds::least_kept(const std::vector<Pair>& open) {
  matrix_.assign(top_.size() * others_.size(), 0);
  for (const Pair& pair : open)
    matrix_[static_cast<std::size_t>(pair.above) * others_.size() + static_cast<std::size_t>(pair.below)] = 1;
  const auto k = static_cast<std::int64_t>(top_.size());
  return k - metric::most_swaps(matrix_, k, static_cast<std::int64_t>(others_.size()));
}

}  // namespace holdfast::attack::exact
