// The arithmetic of bounds of pairs of features, row by row without torch: tensors of all pairs would not fit a cache.
#pragma once

#include <cstdint>

namespace holdfast::measure::pair_loops {

// ||a - b||_2 and ||a + b||_2, each plus ||r + s||_2.
struct Distances {
  double together = 0, apart = 0;
};
Distances distances(std::int64_t n, const double* a, const double* b, const double* r, const double* s);

// Sums of half |a - b| and of half |a + b|.
Distances weighted_distances(std::int64_t n, const double* half, const double* a, const double* b);

}  // namespace holdfast::measure::pair_loops
