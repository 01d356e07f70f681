// How many features of the top k can have left it at once, when some pairs of a top feature and another are proven to keep their
// order and the others are open.
#pragma once

#include <cstdint>
#include <span>

#include "holdfast/core/stages.h"

namespace holdfast::metric {

// `open` has a row for each top feature and a column for each other one, row after row: whether the pair may have changed its
// order.
//
// If d features have left, d others have entered, and each of these is above each of those: d rows and d columns with all d * d
// pairs open. The largest such block is hard to find; the result is the largest d for which rows and columns remain after
// all with fewer than d open pairs have been struck out, again and again, which is never less.
std::int64_t most_swaps(std::span<const std::int8_t> open, std::int64_t top, std::int64_t others);

// The same between any two top sets that the proven pairs allow, where the first is not known either: d features of the one and d
// of the other, none in both, with all pairs of them open. Pairs within the top and within the others count as open. The result
// is the largest d for which at least 2 d features remain after all with fewer than d open pairs have been struck out, again and
// again.
std::int64_t most_swaps_of_any(std::span<const std::int8_t> open, std::int64_t top, std::int64_t others);

}  // namespace holdfast::metric
