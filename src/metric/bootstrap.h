// Percentile bootstrap over samples, of any number that is computed from some of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "holdfast/metric/levels.h"

namespace holdfast::metric {

inline constexpr int kResamples = 2000;

// Interpolates linearly between the two nearest values, as NumPy does by default.
double quantile(const std::vector<double>& sorted, double share);

// `statistic` is given positions of samples: all of them once for the mean, as many drawn with replacement for the interval. What
// is NaN is left out. No interval for fewer than two samples. Beyond 20,000 samples there are fewer resamples, 200 at least: what
// they cost is bounded, and the interval is narrow there.
using Statistic = std::function<double(std::span<const std::uint32_t> positions)>;
Interval bootstrap(std::size_t samples, std::uint64_t seed, std::string_view purpose, const Statistic& statistic);

}  // namespace holdfast::metric
