#pragma once

#include <algorithm>
#include <cmath>

namespace holdfast::metric {

// Equal but for the rounding of the maps and of sums over them: the cosine of proportional maps is 1 in this sense only.
inline bool equal_up_to_rounding(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

}  // namespace holdfast::metric
