#include "top_rows.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <vector>

namespace holdfast::train::top_rows {
namespace {

// Numbers >= 0 are in the order of their bits.
template <class Number>
using Bits = std::conditional_t<sizeof(Number) == 4, std::int32_t, std::int64_t>;

template <class Whole>
[[gnu::always_inline]] inline Whole count_above(const std::vector<Whole>& values, Whole limit) {
  Whole count = 0;
  for (const Whole value : values) count += value > limit;
  return count;
}

// A limit that exactly k of the values are above, or, where equal values stand in the way, the k-th largest of them.
template <class Whole>
[[gnu::always_inline]] inline Whole limit_of(const std::vector<Whole>& values, Whole k) {
  Whole low = std::numeric_limits<Whole>::max(), high = 0;
  for (const Whole value : values) low = std::min(low, value), high = std::max(high, value);
  --low;  // now at least k values are above `low`, and fewer above `high`
  while (high - low > 1) {
    const Whole middle = low + (high - low) / 2, above = count_above(values, middle);
    if (above == k) return middle;
    (above > k ? low : high) = middle;
  }
  return high;
}

template <class Number>
[[gnu::always_inline]] inline void mark_rows(Shape shape, std::int64_t k, const Number* magnitudes, Number inside, Number outside,
                                             Number* marks) {
  std::vector<Bits<Number>> bits(static_cast<std::size_t>(shape.width));
  for (std::int64_t row = 0; row < shape.rows; ++row, magnitudes += shape.width, marks += shape.width) {
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = std::bit_cast<Bits<Number>>(magnitudes[i]);
    const auto limit = limit_of(bits, static_cast<Bits<Number>>(k));
    for (std::size_t i = 0; i < bits.size(); ++i) marks[i] = bits[i] > limit ? inside : outside;
    auto ties = k - count_above(bits, limit);
    for (std::size_t i = 0; ties > 0; ++i) {
      if (bits[i] != limit) continue;
      marks[i] = inside;
      --ties;
    }
  }
}

#if defined(__x86_64__)
template <class Number>
__attribute__((target("avx2"))) void mark_rows_avx2(Shape shape, std::int64_t k, const Number* magnitudes, Number inside,
                                                    Number outside, Number* marks) {
  mark_rows(shape, k, magnitudes, inside, outside, marks);
}
#endif

}  // namespace

template <class Number>
void mark(Shape shape, std::int64_t k, const Number* magnitudes, Number inside, Number outside, Number* marks) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return mark_rows_avx2(shape, k, magnitudes, inside, outside, marks);
#endif
  mark_rows(shape, k, magnitudes, inside, outside, marks);
}

template void mark(Shape, std::int64_t, const float*, float, float, float*);
template void mark(Shape, std::int64_t, const double*, double, double, double*);

}  // namespace holdfast::train::top_rows
