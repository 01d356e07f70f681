#include "select.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
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
  bool inside(double value) const { return value > low && value < high; }
};

// Where about `count` values should be above, if the map's tail falls exponentially, as those of explanations do.
double guess_for(const Bracket& bracket, double count) {
  const double from = std::log(static_cast<double>(bracket.above_low));
  const double to = std::log(std::max(static_cast<double>(bracket.above_high), 0.5));
  return bracket.low + (from - std::log(count)) / (from - to) * (bracket.high - bracket.low);
}

// Halves the number of doubles between: whatever the map looks like, this gets there.
double middle_of(const Bracket& bracket) {
  const auto low = std::bit_cast<std::uint64_t>(bracket.low), high = std::bit_cast<std::uint64_t>(bracket.high);
  return std::bit_cast<double>(low + (high - low) / 2);
}

// Counts values above guesses until few candidates are left between; counting is far cheaper than moving values around.
void narrow(std::span<const double> values, std::int64_t k, Bracket& bracket) {
  const std::int64_t few = 32 + static_cast<std::int64_t>(values.size()) / 64;
  const double wanted = static_cast<double>(k), margin = static_cast<double>(few) / 3;
  std::int64_t before_last = 2 * bracket.candidates(), last = before_last;  // candidates, one and two rounds ago
  for (int round = 0; round < 40 && bracket.candidates() > few; ++round) {
    const bool stuck = 2 * bracket.candidates() > before_last;
    before_last = std::exchange(last, bracket.candidates());
    // In turn a little below and a little above the k-th, so that both ends come close.
    const double target = round % 2 == 0 ? std::min(wanted + margin, (wanted + static_cast<double>(bracket.above_low)) / 2)
                                         : std::max(wanted - margin, (wanted + static_cast<double>(bracket.above_high)) / 2);
    double guess = stuck ? middle_of(bracket) : guess_for(bracket, target);
    if (!bracket.inside(guess)) guess = middle_of(bracket);
    if (!bracket.inside(guess)) return;  // neighbouring doubles: all candidates are equal
    const std::int64_t above = kernels::count_above(values, guess);
    if (above >= k) {
      bracket.low = guess, bracket.above_low = above;
    } else {
      bracket.high = guess, bracket.above_high = above;
    }
  }
}

}  // namespace

Threshold threshold_of(std::span<const double> values, std::int64_t k) {
  if (k == 0) return {std::numeric_limits<double>::infinity(), 0};
  if (values.size() < kFew) return select_on_a_copy(values, k);
  Bracket bracket{.low = 0, .high = kernels::largest(values), .above_low = kernels::count_above(values, 0), .above_high = 0};
  if (bracket.above_low < k) {
    // Maps are often zero in most places, and never below.
    const bool zero = std::count_if(values.begin(), values.end(), [](double value) { return value >= 0; }) >= k;
    return zero ? Threshold{0, k - bracket.above_low} : select_on_a_copy(values, k);
  }
  narrow(values, k, bracket);
  scratch().resize(std::max(scratch().size(), static_cast<std::size_t>(bracket.candidates()) + 4));
  const std::int64_t kept = kernels::keep_between(values, bracket.low, bracket.high, scratch().data());
  const std::span<double> candidates = std::span(scratch()).first(static_cast<std::size_t>(kept));
  return kept <= kCountable ? count_among(candidates, k - bracket.above_high) : select_among(candidates, k - bracket.above_high);
}

}  // namespace holdfast
