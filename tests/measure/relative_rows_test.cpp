#include "../../src/measure/relative_rows.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast::measure {
namespace {

// The definition, term by term in double.
double plain(const double* from, const double* to, std::int64_t elements) {
  double sum = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    if (from[i] != 0) sum += std::pow((to[i] - from[i]) / from[i], 2);
  }
  return std::sqrt(sum);
}

// Lengths around the number of sums that run side by side, with zeros in every remainder.
TEST(RelativeRows, AreTheDefinitionForEveryLength) {
  constexpr std::int64_t kSamples = 3, kPoints = 4;
  RandomStream random(1, "test", 0);
  for (std::int64_t elements = 1; elements < 40; ++elements) {
    std::vector<double> from, to;
    for (std::int64_t i = 0; i < kSamples * elements; ++i) from.push_back(i % 5 == 2 ? 0 : random.normal());
    for (std::int64_t i = 0; i < kSamples * kPoints * elements; ++i) to.push_back(random.normal());
    std::vector<double> change(kSamples * kPoints);
    relative_rows::change<double>({kSamples, kPoints, elements}, from.data(), to.data(), change.data());
    for (std::int64_t row = 0; row < kSamples * kPoints; ++row) {
      const double expected = plain(from.data() + row / kPoints * elements, to.data() + row * elements, elements);
      EXPECT_NEAR(change[static_cast<std::size_t>(row)], expected, 1e-12 * (1 + expected)) << elements << " elements";
    }
  }
}

TEST(RelativeRows, ATinyElementThatStaysHasNoChange) {
  const float from[] = {std::numeric_limits<float>::denorm_min(), 1}, to[] = {from[0], 3};
  float change = 0;
  relative_rows::change<float>({1, 1, 2}, from, to, &change);
  EXPECT_EQ(change, 2);
}

}  // namespace
}  // namespace holdfast::measure
