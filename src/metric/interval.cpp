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

}  // namespace

Interval mean_interval(std::span<const double> values, std::uint64_t seed) {
  std::vector<double> defined;
  std::copy_if(values.begin(), values.end(), std::back_inserter(defined), [](double value) { return !std::isnan(value); });
  if (defined.empty()) {
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    return {nothing, nothing, nothing, 0};
  }
  const double nothing_known = std::numeric_limits<double>::quiet_NaN();
  if (defined.size() == 1) return {defined[0], nothing_known, nothing_known, 1, defined[0]};
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
