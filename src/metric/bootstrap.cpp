#include "bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "holdfast/core/random_words.h"

namespace holdfast::metric {

double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Interval bootstrap(std::size_t samples, std::uint64_t seed, std::string_view purpose, const Statistic& statistic) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  constexpr std::size_t kManySamples = 20000, kFewestResamples = 200;
  if (samples == 0) return {kNothing, kNothing, kNothing, 0};
  std::vector<std::uint32_t> positions(samples);
  std::iota(positions.begin(), positions.end(), 0U);
  Interval result{statistic(positions), kNothing, kNothing, static_cast<std::int64_t>(samples)};
  if (samples < 2 || std::isnan(result.mean)) return result;
  const std::size_t resamples =
      samples <= kManySamples ? std::size_t{kResamples} : std::max(kFewestResamples, kResamples * kManySamples / samples);
  const StreamWords streams(seed, purpose);
  std::vector<double> found;
  for (std::uint64_t resample = 0; resample < resamples; ++resample) {
    streams.fill(resample, 0, positions);
    for (std::uint32_t& word : positions) word = static_cast<std::uint32_t>((std::uint64_t{word} * samples) >> 32);
    const double value = statistic(positions);
    if (!std::isnan(value)) found.push_back(value);
  }
  if (found.empty()) return result;
  std::sort(found.begin(), found.end());
  result.low = quantile(found, 0.025);
  result.high = quantile(found, 0.975);
  return result;
}

}  // namespace holdfast::metric
