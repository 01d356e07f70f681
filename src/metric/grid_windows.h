// Windows of grids: separable, rows first and columns then, so that the work does not grow with the window's area.
#pragma once

#include <cstdint>
#include <span>

#include "holdfast/metric/feature_set.h"

namespace holdfast {

// Dilation by `radius` in both directions. The set has sides * height rows; nothing crosses from a side to the next.
void dilate(FeatureSet& set, std::int64_t sides, std::int64_t radius);

// sums[i] = values over the (2 radius + 1)^2 window around i, cut at the border. Every sum adds its values in the same order,
// directly: a running sum or a summed-area table would leave rounding dust where a map is exactly zero, and rank correlations
// of smoothed maps would then rank the dust.
void window_sums(std::span<const double> values, std::int64_t sides, std::int64_t height, std::int64_t width, std::int64_t radius,
                 std::span<double> sums);

}  // namespace holdfast
