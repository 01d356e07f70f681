// Diverse top k: the most important features no two of which are near each other.
//
// Greedy, from one sort: the highest feature that is left is taken and its window is barred, k times or until nothing is left
// (28 x 28 pixels have room for 66 or so with a window of radius 2). Equal values are taken from the lower index on. Kamath et
// al., "Rethinking Robustness of Model Attributions", AAAI 2024, call this optimal; it is not: of 5, 6, 5 with radius 1 it takes
// the 6 and is done, where 5 + 5 would be more.
#pragma once

#include <cstdint>
#include <span>

#include "holdfast/core/stages.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::metric {

// Fills `chosen` and says how many were found, k or fewer. `apart` is the window that is barred; values are >= 0 and finite.
std::int64_t diverse_top_k(std::span<const double> values, std::int64_t k, const Neighborhood& apart, FeatureSet& chosen);

// Does the same for features in a given order.
std::int64_t pick_apart(std::span<const std::uint32_t> order, std::int64_t k, const Neighborhood& apart, FeatureSet& chosen);

// Whether a feature was left out that could have been taken in place of one of the same value.
bool diverse_ties_decide(std::span<const double> values, std::int64_t k, const Neighborhood& apart);

}  // namespace holdfast::metric
