#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/core/rng.h"
#include "holdfast/metric/levels.h"

namespace holdfast {
namespace {

constexpr int kResamples = 2000;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Linear between the two nearest, as NumPy's default.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// How far the mean may lie from a value that all of `count` samples have, where it is `room` to the end of the range.
double unseen(double room, std::int64_t count) {
  return std::isfinite(room) ? room * (1 - std::pow(0.025, 1 / static_cast<double>(count))) : 0;
}

}  // namespace

Interval mean_interval(std::span<const double> values, std::uint64_t seed, double low, double high) {
  Interval result = mean_interval(values, seed);
  const bool all_equal =
      std::all_of(values.begin(), values.end(), [&](double value) { return std::isnan(value) || value == result.median; });
  if (result.count < 2 || !all_equal) return result;
  const double value = result.median;
  result.mean = value;  // without the rounding of a sum
  result.low = value - unseen(value - low, result.count);
  result.high = value + unseen(high - value, result.count);
  return result;
}

Interval mean_interval(std::span<const double> values, std::uint64_t seed) {
  std::vector<double> defined;
  std::copy_if(values.begin(), values.end(), std::back_inserter(defined), [](double value) { return !std::isnan(value); });
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  if (defined.empty()) return {kNothing, kNothing, kNothing, 0};
  if (defined.size() == 1) return {defined[0], kNothing, kNothing, 1, defined[0]};
  RandomStream stream(seed, "bootstrap");
  std::vector<double> means(kResamples);
  for (double& mean : means) {
    double sum = 0;
    for (std::size_t i = 0; i < defined.size(); ++i) sum += defined[stream.below(defined.size())];
    mean = sum / static_cast<double>(defined.size());
  }
  std::sort(means.begin(), means.end());
  const double mean = mean_of(defined);
  std::sort(defined.begin(), defined.end());
  return {mean, quantile(means, 0.025), quantile(means, 0.975), static_cast<std::int64_t>(defined.size()),
          quantile(defined, 0.5)};
}

}  // namespace holdfast
