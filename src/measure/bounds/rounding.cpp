#include "rounding.h"

#include <algorithm>
#include <limits>

namespace holdfast::measure {

double unit_roundoff(at::ScalarType type) {
  const double bounds = std::numeric_limits<double>::epsilon() / 2;
  switch (type) {
    case at::kDouble:
      return 2 * bounds;
    case at::kHalf:
      return 0x1p-11 + bounds;
    case at::kBFloat16:
      return 0x1p-8 + bounds;
    default:
      return 0x1p-24 + bounds;
  }
}

double rounding_of(std::int64_t operations, double unit) {
  const double together = static_cast<double>(operations) * unit;
  return together < 1 ? together / (1 - together) : std::numeric_limits<double>::infinity();
}

}  // namespace holdfast::measure
