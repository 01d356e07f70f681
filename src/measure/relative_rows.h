// || (y - x) / x || for many points y around each x, in one pass over the points.
#pragma once

#include <cstdint>

namespace holdfast::measure::relative_rows {

struct Shape {
  std::int64_t samples, points, elements;
};

// from: [samples, elements]; to: [samples, points, elements]; change: [samples, points], l2 norms. Elements that are zero at x
// have no relative change and are left out; where all are, the norm is 0. In the numbers' own precision.
template <class Number>
void change(Shape shape, const Number* from, const Number* to, Number* change);

}  // namespace holdfast::measure::relative_rows
