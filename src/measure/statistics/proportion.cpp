#include "holdfast/measure/proportion.h"

#include <cmath>

#include "../nan.h"
#include "holdfast/core/error.h"

namespace holdfast::measure {
namespace {

constexpr double kTail = 0.025;

double log_probability(double successes, double count, double p) {
  return std::lgamma(count + 1) - std::lgamma(successes + 1) - std::lgamma(count - successes + 1) + successes * std::log(p) +
         (count - successes) * std::log1p(-p);
}

// The p at which the upper tail from `successes` on is `tail`; the tail grows with p.
double solve(std::int64_t successes, std::int64_t count, double tail) {
  double low = 0, high = 1;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) return middle;
    (binomial_upper_tail(successes, count, middle) < tail ? low : high) = middle;
  }
}

}  // namespace

double binomial_upper_tail(std::int64_t successes, std::int64_t count, double p) {
  if (successes <= 0) return 1;
  if (successes > count || p <= 0) return 0;
  if (p >= 1) return 1;
  const double n = static_cast<double>(count), odds = p / (1 - p);
  const double start = static_cast<double>(successes);
  // Terms fall away from the mean: sum the side that does not contain it, so that the sum ends early and loses nothing.
  double sum = 0;
  if (start > n * p) {
    double term = std::exp(log_probability(start, n, p));
    for (double k = start; k <= n && term > sum * 1e-17; term *= (n - k) / (k + 1) * odds, ++k) sum += term;
    return sum;
  }
  double term = std::exp(log_probability(start - 1, n, p));
  for (double k = start - 1; k >= 0 && term > sum * 1e-17; term *= k / (n - k + 1) / odds, --k) sum += term;
  return 1 - sum;
}

ProportionBounds proportion_bounds(std::int64_t successes, std::int64_t count, double tail) {
  HOLDFAST_CHECK(0 <= successes && successes <= count && count > 0);
  return {.low = successes == 0 ? 0 : solve(successes, count, tail),
          .high = successes == count ? 1 : solve(successes + 1, count, 1 - tail)};
}

Interval proportion_interval(std::int64_t successes, std::int64_t count) {
  HOLDFAST_CHECK(0 <= successes && successes <= count);
  if (count == 0) return {kNaN, kNaN, kNaN, 0};
  const ProportionBounds ends = proportion_bounds(successes, count, kTail);
  return {
      .mean = static_cast<double>(successes) / static_cast<double>(count), .low = ends.low, .high = ends.high, .count = count};
}

}  // namespace holdfast::measure
