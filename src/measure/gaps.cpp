#include "gaps.h"

#include <algorithm>
#include <limits>

#include "holdfast/core/error.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::measure {
namespace {

double mean_at(std::span<const double> values, std::span<const std::int64_t> positions) {
  double sum = 0;
  for (const std::int64_t i : positions) sum += values[static_cast<std::size_t>(i)];
  return sum / static_cast<double>(positions.size());
}

}  // namespace

Gaps::Gaps(std::vector<std::int64_t> above, std::vector<std::int64_t> below)
    : above_(std::move(above)), below_(std::move(below)) {
  HOLDFAST_CHECK(!above_.empty() && !below_.empty());
}

double Gaps::share_in_order(std::span<const double> values) {
  const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  for (const std::int64_t i : above_) lowest = std::min(lowest, value(i));
  for (const std::int64_t j : below_) highest = std::max(highest, value(j));
  if (lowest >= highest) return 1;

  // Pairs out of order have a member of `above` that is lower than some of `below`, and the reverse: only those are sorted.
  low_.clear();
  for (const std::int64_t i : above_) {
    if (value(i) < highest) low_.push_back(value(i));
  }
  std::sort(low_.begin(), low_.end());
  std::ptrdiff_t out_of_order = 0;
  for (const std::int64_t j : below_) {
    if (value(j) > lowest) out_of_order += std::lower_bound(low_.begin(), low_.end(), value(j)) - low_.begin();
  }
  return 1 - static_cast<double>(out_of_order) / static_cast<double>(above_.size() * below_.size());
}

double Gaps::mean_gap(std::span<const double> values) const {
  return mean_at(values, above_) - mean_at(values, below_);
}

Gaps top_k_gaps(std::span<const double> values, std::int64_t k) {
  const std::vector<std::int64_t> top = top_k_set(values, k);
  std::vector<std::int64_t> rest;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
    if (!std::binary_search(top.begin(), top.end(), i)) rest.push_back(i);
  }
  return Gaps(top, rest);
}

Gaps pair_gap(std::span<const double> values, std::int64_t rank, std::int64_t lower_rank) {
  const std::vector<std::int64_t> ranked = top_k_ranked(values, lower_rank);
  return Gaps({ranked[static_cast<std::size_t>(rank - 1)]}, {ranked.back()});
}

}  // namespace holdfast::measure
