// Growing sets and adding values over windows. On a grid the work is done by rows first and columns then, so that it does not
// grow with the window's area. On a complete graph the window of an edge is every edge that shares a node with it.
#pragma once

#include <cstdint>
#include <span>

#include "holdfast/metric/feature_set.h"

namespace holdfast::metric {

// Dilates the set by `radius` in both directions. The set has sides * height rows; nothing crosses from a side to the next.
void dilate(FeatureSet& set, std::int64_t sides, std::int64_t radius);

// sums[i] = values over the (2 radius + 1)^2 window around i, cut at the border. Every sum adds its values in the same order,
// directly: a running sum or a summed-area table would leave rounding dust where a map is exactly zero, and rank correlations
// of smoothed maps would then rank the dust.
void window_sums(std::span<const double> values, std::int64_t sides, std::int64_t height, std::int64_t width, std::int64_t radius,
                 std::span<double> sums);

// sums[(i, j)] = values over all edges at node i or node j, of one side. Each sum adds its values in ascending order of the
// edges, for the same reason.
void edge_window_sums(std::span<const double> values, std::int64_t nodes, std::span<double> sums);

}  // namespace holdfast::metric
