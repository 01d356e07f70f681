#include "search_points.h"

#include <cmath>
#include <limits>
#include <map>

#include "holdfast/core/torch.h"

namespace holdfast::attack::gauntlet {

SearchPoints::SearchPoints(const AttackState& state) : points_(state.ledger.best_points()) {
  const double sign = state.task.metric.direction() == Direction::kHigherIsMoreAlike ? 1 : -1;
  for (std::int64_t i = 0; i < points_.size(0); ++i) {
    const double value = state.ledger.best_value(i);
    harm_.push_back(std::isnan(value) ? std::numeric_limits<double>::infinity() : sign * value);
  }
}

void SearchPoints::put(at::Tensor points) {
  points_ = std::move(points);
  harm_.assign(harm_.size(), std::numeric_limits<double>::infinity());
}

void SearchPoints::move(const at::Tensor& points, const std::vector<double>& harm, const Ledger::Owners& owners) {
  std::map<std::int64_t, std::int64_t> chosen;  // by sample
  for (std::size_t row = 0; row < owners.size(); ++row) {
    double& least = harm_[static_cast<std::size_t>(owners[row])];
    if (!std::isfinite(harm[row]) || harm[row] > least) continue;
    least = harm[row];
    chosen[owners[row]] = static_cast<std::int64_t>(row);
  }
  if (chosen.empty()) return;
  std::vector<std::int64_t> samples, rows;
  for (const auto& [sample, row] : chosen) {
    samples.push_back(sample);
    rows.push_back(row);
  }
  const auto index = [&](const std::vector<std::int64_t>& positions) {
    return at::tensor(at::ArrayRef<std::int64_t>(positions), at::kLong).to(points.device());
  };
  points_ = points_.index_copy(0, index(samples), points.index_select(0, index(rows)));
}

}  // namespace holdfast::attack::gauntlet
