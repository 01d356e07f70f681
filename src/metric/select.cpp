#include "select.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <vector>

#include "holdfast/core/error.h"
#include "kernels.h"

namespace holdfast {
namespace {

// Below this a selection on a copy is faster than counting.
constexpr std::size_t kFew = 96;
// Up to so many candidates, counting finds the k-th faster than a selection.
constexpr std::int64_t kCountable = 64;

// The k-th largest of a few values, which are reordered.
Threshold select_among(std::span<double> values, std::int64_t k) {
  const auto kth = values.begin() + (k - 1);
  std::nth_element(values.begin(), kth, values.end(), std::greater<>());
  const double value = *kth;
  return {value, k - std::count_if(values.begin(), kth, [&](double other) { return other > value; })};
}

// The same by counting, which has no branches to guess: the value with fewer than k above it, and k with those equal to it.
Threshold count_among(std::span<const double> values, std::int64_t k) {
  for (const double value : values) {
    const std::int64_t above = kernels::count_above(values, value);
    if (above < k && above + std::count(values.begin(), values.end(), value) >= k) return {value, k - above};
  }
  HOLDFAST_CHECK(false);
  return {};
}

// One copy a thread: attacks ask for thresholds by the million.
std::vector<double>& scratch() {
  thread_local std::vector<double> values;
  return values;
}

Threshold select_on_a_copy(std::span<const double> values, std::int64_t k) {
  scratch().assign(values.begin(), values.end());
  return select_among(scratch(), k);
}

// low < the k-th largest value <= high, and how many values are above each.
struct Bracket {
  double low, high;
  std::int64_t above_low, above_high;

  std::int64_t candidates() const { return above_low - above_high; }
};

// Halves the number of doubles between, which is halving the octaves first: whatever the map looks like, this gets there.
double middle_of(const Bracket& bracket) {
  const auto low = std::bit_cast<std::uint64_t>(bracket.low), high = std::bit_cast<std::uint64_t>(bracket.high);
  return std::bit_cast<double>(low + (high - low) / 2);
}

// Counts the values above the middle until few candidates are left; counting is far cheaper than moving values around.
void narrow(std::span<const double> values, std::int64_t k, Bracket& bracket) {
  const std::int64_t few = 32 + static_cast<std::int64_t>(values.size()) / 64;
  while (bracket.candidates() > few) {
    const double middle = middle_of(bracket);
    if (!(middle > bracket.low && middle < bracket.high)) return;  // neighbouring doubles: all candidates are equal
    const std::int64_t above = kernels::count_above(values, middle);
    if (above >= k) {
      bracket.low = middle, bracket.above_low = above;
    } else {
      bracket.high = middle, bracket.above_high = above;
    }
  }
}

// Fewer than k values are above zero. Maps are often zero in most places, and never below.
Threshold at_most_zero(std::span<const double> values, std::int64_t k, std::int64_t above_zero) {
  const bool zero = std::count_if(values.begin(), values.end(), [](double value) { return value >= 0; }) >= k;
  return zero ? Threshold{0, k - above_zero} : select_on_a_copy(values, k);
}

}  // namespace

Threshold threshold_of(std::span<const double> values, std::int64_t k) {
  if (k == 0) return {std::numeric_limits<double>::infinity(), 0};
  if (values.size() < kFew) return select_on_a_copy(values, k);
  // The k-th value is rarely further than this from the largest.
  const double largest = kernels::largest(values), far = largest / 256;
  Bracket bracket{.low = far, .high = largest, .above_low = kernels::count_above(values, far), .above_high = 0};
  if (bracket.above_low < k) {
    bracket = {.low = 0, .high = far, .above_low = kernels::count_above(values, 0), .above_high = bracket.above_low};
    if (bracket.above_low < k) return at_most_zero(values, k, bracket.above_low);
  }
  narrow(values, k, bracket);
  scratch().resize(std::max(scratch().size(), static_cast<std::size_t>(bracket.candidates()) + 4));
  const std::int64_t kept = kernels::keep_between(values, bracket.low, bracket.high, scratch().data());
  const std::span<double> candidates = std::span(scratch()).first(static_cast<std::size_t>(kept));
  return kept <= kCountable ? count_among(candidates, k - bracket.above_high) : select_among(candidates, k - bracket.above_high);
}

}  // namespace holdfast
