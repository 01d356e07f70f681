// What decides membership in the top k: the k-th largest value, and how many of those equal to it belong.
#pragma once

#include <cstdint>
#include <span>

namespace holdfast::metric {

struct Threshold {
  double value = 0;       // all values above it belong
  std::int64_t ties = 0;  // and the first so many of those equal to it
};

// 0 <= k <= values.size(), values finite. Linear in the map's size.
Threshold threshold_of(std::span<const double> values, std::int64_t k);

}  // namespace holdfast::metric
