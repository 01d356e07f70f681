// The slopes that gauntlet's walks go down on tables, row by row, against their formulas written with sorted values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "../../src/attack/gauntlet/slopes.h"
#include "holdfast/core/rng.h"

namespace holdfast::attack {
namespace {

constexpr std::size_t kFeatures = 90;

// Magnitudes of which about every other one is tied with another one.
std::vector<float> values_with_ties(std::uint64_t seed) {
  RandomStream random(seed, "slopes", 0);
  std::vector<float> values(kFeatures);
  for (float& value : values) value = (1 + std::round(static_cast<float>(random.uniform()) * 45)) / 46;
  return values;
}

std::vector<std::size_t> highest_first(const std::vector<float>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return values[i]; });
  return order;
}

// Tops of up to 32 features are found by insertion, larger ones by selection.
class Slopes : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Tops, Slopes, testing::Values(1, 8, 32, 33, 60));

TEST_P(Slopes, ContrastLowersTheTopAndRaisesTheHighestOutside) {
  const auto k = static_cast<std::size_t>(GetParam());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> values = values_with_ties(seed);
    std::vector<float> top(kFeatures, 0), scratch, slope(kFeatures);
    for (std::size_t i = 0; i < k; ++i) top[highest_first(values_with_ties(seed + 100))[i]] = 1;
    gauntlet::slopes::contrast(values, GetParam(), top.data(), top.data(), nullptr, scratch, slope.data());

    std::vector<std::size_t> outside = highest_first(values);
    std::erase_if(outside, [&](std::size_t i) { return top[i] == 1; });
    outside.resize(std::min(k, outside.size()));
    double inside_sum = 0, outside_sum = 0;
    for (std::size_t i = 0; i < kFeatures; ++i) inside_sum += static_cast<double>(top[i] * values[i]);
    for (const std::size_t i : outside) outside_sum += static_cast<double>(values[i]);
    std::vector<double> expected(kFeatures, 0);
    for (std::size_t i = 0; i < kFeatures; ++i) expected[i] = static_cast<double>(top[i]) / inside_sum;
    for (const std::size_t i : outside) expected[i] -= 1 / outside_sum;
    for (std::size_t i = 0; i < kFeatures; ++i) EXPECT_NEAR(slope[i], expected[i], 1e-5) << "seed " << seed << ", feature " << i;
  }
}

TEST_P(Slopes, ThresholdLiesBetweenTheTopAndTheRest) {
  const auto k = static_cast<std::size_t>(GetParam());
  const std::vector<float> ones(kFeatures, 1), none(kFeatures, 0);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> values = values_with_ties(seed);
    std::vector<float> scratch, slope(kFeatures);
    gauntlet::slopes::threshold(values, GetParam(), 0.5, ones.data(), none.data(), scratch, slope.data());

    const std::vector<std::size_t> order = highest_first(values);
    const double tau = (static_cast<double>(values[order[k - 1]]) + static_cast<double>(values[order[k]])) / 2;
    std::vector<double> pull(kFeatures);
    for (std::size_t i = 0; i < kFeatures; ++i) {
      const double share = 1 / (1 + std::pow(tau / std::max(static_cast<double>(values[i]), 1e-6), 2));
      pull[i] = share * (1 - share);
    }
    const double all = std::accumulate(pull.begin(), pull.end(), 0.0);
    for (std::size_t i = 0; i < kFeatures; ++i) {
      const double expected = pull[i] / all / std::max(static_cast<double>(values[i]), 1e-6);
      EXPECT_NEAR(slope[i], expected, 1e-4 * (1 + expected)) << "seed " << seed << ", feature " << i;
    }
  }
}

}  // namespace
}  // namespace holdfast::attack
