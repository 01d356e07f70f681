// Ordered pairs of different samples, for the between level.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "holdfast/core/rng.h"

namespace holdfast {

using SamplePair = std::pair<std::int64_t, std::int64_t>;

// Pairs within each group, sorted: all of them when there are no more than `limit`, else `limit` different ones drawn
// uniformly. Ordered, because a metric need not be symmetric.
std::vector<SamplePair> pairs_within(const std::vector<std::vector<std::int64_t>>& groups, std::int64_t limit,
                                     RandomStream stream);

}  // namespace holdfast
