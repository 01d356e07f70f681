#include "relative_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace holdfast::measure::relative_rows {
namespace {

constexpr std::int64_t kSums = 8;  // side by side, so that they are independent: the order of terms is fixed

template <class Number>
Number squared_sum(const Number* from, const Number* divisor, const Number* to, std::int64_t elements) {
  std::array<Number, kSums> sums{};
  std::int64_t i = 0;
  for (; i + kSums <= elements; i += kSums) {
    for (std::int64_t lane = 0; lane < kSums; ++lane) {
      const Number term = (to[i + lane] - from[i + lane]) / divisor[i + lane];
      sums[static_cast<std::size_t>(lane)] += term * term;
    }
  }
  Number sum = 0;
  for (; i < elements; ++i) {
    const Number term = (to[i] - from[i]) / divisor[i];
    sum += term * term;
  }
  for (const Number part : sums) sum += part;
  return sum;
}

}  // namespace

template <class Number>
void change(Shape shape, const Number* from, const Number* to, Number* change) {
  // An infinite divisor takes an element out.
  std::vector<Number> divisor(static_cast<std::size_t>(shape.elements));
  for (std::int64_t sample = 0; sample < shape.samples; ++sample, from += shape.elements) {
    std::replace_copy(from, from + shape.elements, divisor.begin(), Number(0), std::numeric_limits<Number>::infinity());
    for (std::int64_t point = 0; point < shape.points; ++point, to += shape.elements) {
      *change++ = std::sqrt(squared_sum(from, divisor.data(), to, shape.elements));
    }
  }
}

template void change(Shape, const float*, const float*, float*);
template void change(Shape, const double*, const double*, double*);

}  // namespace holdfast::measure::relative_rows
