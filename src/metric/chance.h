// What a map in random order scores: exactly where possible, else over random orders that depend on nothing but the map.
#pragma once

#include <functional>
#include <span>

#include "holdfast/metric/metric.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::metric {

// The mean over the members of `set` of the probability that k of n random features include one near it. A feature with m
// features in its window, itself included, is missed with probability C(n-m, k) / C(n, k).
double chance_of_being_near(const FeatureSet& set, const Neighborhood& near, std::int64_t k);

// The mean of value(order) over random orders of the map's features; undefined values are left out. Orders are keyed by the
// map's values. 16384/n orders, at least 4 and at most 512: small maps scatter more.
double sampled_chance(const MapView& original, const std::function<double(std::span<const std::uint32_t> order)>& value);

// Does the same for metrics of whole maps: `value` is given the original with its values in random order.
double sampled_chance_of_values(const MapView& original, const std::function<double(std::span<const double> map)>& value);

}  // namespace holdfast::metric
