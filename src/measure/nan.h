#pragma once

#include <limits>

namespace holdfast::measure {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();  // undefined

}  // namespace holdfast::measure
