#include "holdfast/metric/diverse.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "order.h"

namespace holdfast::metric {

std::int64_t pick_apart(std::span<const std::uint32_t> order, std::int64_t k, const Neighborhood& apart, FeatureSet& chosen) {
  thread_local FeatureSet barred;
  apart.reset(barred);
  apart.reset(chosen);
  std::int64_t found = 0;
  for (const std::uint32_t feature : order) {
    if (found == k) break;
    if (barred.contains(feature)) continue;
    chosen.add(feature);
    apart.add_window(feature, barred);
    ++found;
  }
  return found;
}

std::int64_t diverse_top_k(std::span<const double> values, std::int64_t k, const Neighborhood& apart, FeatureSet& chosen) {
  thread_local std::vector<std::uint32_t> order;
  sort_descending(values, order);
  return pick_apart(order, k, apart, chosen);
}

bool diverse_ties_decide(std::span<const double> values, std::int64_t k, const Neighborhood& apart) {
  std::vector<std::uint32_t> order;
  sort_descending(values, order);
  FeatureSet barred;
  apart.reset(barred);
  std::int64_t found = 0;
  for (std::size_t first = 0, end = 0; first < order.size() && found < k; first = end) {
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    // Those of this value that are free before any of them is taken must all be taken.
    const auto is_barred = [&](std::uint32_t feature) { return barred.contains(feature); };
    const auto tied = std::span(order).subspan(first, end - first);
    const std::int64_t free = std::ranges::count_if(tied, std::not_fn(is_barred));
    std::int64_t taken = 0;
    for (const std::uint32_t feature : tied) {
      if (found == k || is_barred(feature)) continue;
      apart.add_window(feature, barred);
      ++found, ++taken;
    }
    if (taken < free) return true;
  }
  return false;
}

}  // namespace holdfast::metric
