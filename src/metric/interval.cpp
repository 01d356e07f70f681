#include <algorithm>
#include <cmath>
#include <limits>

#include "bootstrap.h"
#include "holdfast/core/random_words.h"
#include "holdfast/metric/levels.h"
#include "rounding.h"

namespace holdfast::metric {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Means of as many values, drawn with replacement. A position is the high half of word * count: for any number of samples that
// fits in memory no position is favoured by more than a thousandth, and a division for each draw would cost more than everything
// else.
std::vector<double> resampled_means(const std::vector<double>& values, std::uint64_t seed) {
  const StreamWords streams(seed, "bootstrap");
  std::vector<std::uint32_t> words(values.size());
  std::vector<double> means;
  for (std::uint64_t resample = 0; resample < kResamples; ++resample) {
    streams.fill(resample, 0, words);
    double sum = 0;
    for (const std::uint32_t word : words) sum += values[(std::uint64_t{word} * values.size()) >> 32];
    means.push_back(sum / static_cast<double>(values.size()));
  }
  return means;
}

// How far the mean may lie from a value that all of `count` samples have, where it is `room` to the end of the range.
double unseen(double room, std::int64_t count) {
  return std::isfinite(room) ? room * (1 - std::pow(0.025, 1 / static_cast<double>(count))) : 0;
}

}  // namespace

Interval mean_interval(std::span<const double> values, std::uint64_t seed, double low, double high) {
  Interval result = mean_interval(values, seed);
  const bool all_equal = std::all_of(values.begin(), values.end(), [&](double value) {
    return std::isnan(value) || equal_up_to_rounding(value, result.median);
  });
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
  std::vector<double> means = resampled_means(defined, seed);
  std::sort(means.begin(), means.end());
  const double mean = mean_of(defined);
  std::sort(defined.begin(), defined.end());
  return {mean, quantile(means, 0.025), quantile(means, 0.975), static_cast<std::int64_t>(defined.size()),
          quantile(defined, 0.5)};
}

}  // namespace holdfast::metric
