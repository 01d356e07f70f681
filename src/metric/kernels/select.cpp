#include "select.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <vector>

#include "holdfast/core/error.h"
#include "kernels.h"

namespace holdfast::metric {
namespace {

// Below this a selection on a copy is faster than counting.
constexpr std::size_t kFew = 96;
// Up to so many candidates, counting finds the k-th faster than a selection.
constexpr std::int64_t kCountable = 64;

// Finds the k-th largest of a few values, which are reordered.
Threshold select_among(std::span<double> values, std::int64_t k) {
  const auto kth = values.begin() + (k - 1);
  std::nth_element(values.begin(), kth, values.end(), std::greater<>());
  const double value = *kth;
  return {value, k - std::count_if(values.begin(), kth, [&](double other) { return other > value; })};
}

// Finds the k-th largest by counting, which has no branches to guess: fewer than k values are above it, k with those equal to it.
Threshold count_among(std::span<const double> values, std::int64_t k) {
  for (const double value : values) {
    const std::int64_t above = kernels::count_above(values, value);
    if (above < k && above + std::count(values.begin(), values.end(), value) >= k) return {value, k - above};
  }
  HOLDFAST_CHECK(false);
  return {};
}

// Memory of a thread, used again: attacks ask for thresholds by the million.
struct Scratch {
  std::vector<double> values;
  std::vector<std::int32_t> halves;

  std::span<double> room(std::int64_t count) {
    values.resize(std::max(values.size(), static_cast<std::size_t>(count)));
    return values;
  }
};
Scratch& scratch() {
  thread_local Scratch memory;
  return memory;
}

Threshold select_on_a_copy(std::span<const double> values, std::int64_t k) {
  scratch().values.assign(values.begin(), values.end());
  return select_among(scratch().values, k);
}

// Upper halves of doubles: low < that of the k-th largest value <= high, and how many values have one above each.
struct Bracket {
  std::int32_t low, high;
  std::int64_t above_low, above_high;

  std::int64_t candidates() const { return above_low - above_high; }
};

// An upper half has twenty bits of the mantissa below the exponent.
constexpr std::int32_t kOctave = 1 << 20;

// Counts the values above the middle until few candidates are left; counting is far cheaper than moving values around. Halving
// bits is halving octaves first: it takes as long whatever the map looks like.
void narrow(std::span<const std::int32_t> halves, std::int64_t k, Bracket& bracket) {
  const std::int64_t few = 8 + static_cast<std::int64_t>(halves.size()) / 512;
  while (bracket.candidates() > few && bracket.high - bracket.low > 1) {
    const std::int32_t middle = bracket.low + (bracket.high - bracket.low) / 2;
    const std::int64_t above = kernels::count_above(halves, middle);
    if (above >= k) {
      bracket.low = middle, bracket.above_low = above;
    } else {
      bracket.high = middle, bracket.above_high = above;
    }
  }
}

// Fewer than k values are above the smallest of doubles. Maps are often zero in most places, and never below.
Threshold near_zero(std::span<const double> values, std::int64_t k) {
  const std::int64_t above_zero = kernels::count_above(values, 0);
  const bool zero = above_zero < k && std::count_if(values.begin(), values.end(), [](double value) { return value >= 0; }) >= k;
  return zero ? Threshold{0, k - above_zero} : select_on_a_copy(values, k);
}

}  // namespace

Threshold threshold_of(std::span<const double> values, std::int64_t k) {
  if (k == 0) return {std::numeric_limits<double>::infinity(), 0};
  if (values.size() < kFew) return select_on_a_copy(values, k);
  scratch().halves.resize(values.size());
  const std::span<std::int32_t> halves = scratch().halves;
  const std::int32_t largest = kernels::upper_halves(values, halves.data());
  // The k-th value is rarely further from the largest than four octaves.
  const std::int32_t far = std::max(largest - 4 * kOctave, 0);
  if (largest <= 0) return near_zero(values, k);
  Bracket bracket{.low = far, .high = largest, .above_low = kernels::count_above(halves, far), .above_high = 0};
  if (bracket.above_low < k) {
    bracket = {.low = 0, .high = far, .above_low = kernels::count_above(halves, 0), .above_high = bracket.above_low};
    if (bracket.above_low < k) return near_zero(values, k);
  }
  narrow(halves, k, bracket);
  const std::span<double> room = scratch().room(bracket.candidates());
  const std::int64_t kept = kernels::keep_between(values, halves.data(), bracket.low, bracket.high, room.data());
  const std::span<double> candidates = room.first(static_cast<std::size_t>(kept));
  return kept <= kCountable ? count_among(candidates, k - bracket.above_high) : select_among(candidates, k - bracket.above_high);
}

}  // namespace holdfast::metric
