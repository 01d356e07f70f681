// cosine and l2, and values straight from maps in memory.
#include <cmath>

#include <gtest/gtest.h>

#include "holdfast/metric/compare.h"
#include "maps.h"

namespace holdfast::metric {
namespace {

const Schema& two() {
  static const Schema schema = Schema::of(Layout::vector(2));
  return schema;
}

TEST(Cosine, IsTheAngle) {
  EXPECT_DOUBLE_EQ(compare("cosine", two(), {1, 0}, {1, 1}), std::sqrt(0.5));
  EXPECT_EQ(compare("cosine", two(), {1, 0}, {0, 3}), 0);
  EXPECT_EQ(compare("cosine", two(), {3, 4}, {3, 4}), 1);
}

TEST(Cosine, SurvivesHugeAndTinyMaps) {
  EXPECT_DOUBLE_EQ(compare("cosine", two(), {1e300, 0}, {1e-300, 1e-300}), std::sqrt(0.5));
}

TEST(L2, IsBetweenMapsScaledToTheirNumberOfFeatures) {
  // (1, 0) -> (2, 0) and (1, 3) -> (1/2, 3/2).
  EXPECT_DOUBLE_EQ(compare("l2", two(), {1, 0}, {1, 3}), std::hypot(1.5, 1.5));
  EXPECT_EQ(compare("l2", two(), {1, 3}, {10, 30}), 0);
  EXPECT_DOUBLE_EQ(compare("l2", two(), {1e308, 1e308}, {0, 1e308}), std::sqrt(2.0));
}

TEST(WholeMaps, AreUndefinedWhereAMapIsZero) {
  for (const char* name : {"cosine", "l2"}) {
    EXPECT_TRUE(std::isnan(compare(name, two(), {0, 0}, {1, 2})));
    EXPECT_TRUE(std::isnan(compare(name, two(), {1, 2}, {0, 0})));
  }
}

TEST(CompareMaps, FoldsEachMapAsItGoes) {
  const Schema schema = Schema::of(Layout::grid(3, 4, 5));
  RandomStream stream(1, "test");
  constexpr std::size_t kSamples = 7, kInputs = 60, kFeatures = 20;
  std::vector<float> a(kSamples * kInputs), b(kSamples * kInputs);
  for (std::vector<float>* maps : {&a, &b}) {
    for (float& value : *maps) value = static_cast<float>(stream.normal());
  }
  const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
  for (const MethodInfo* info : metrics().infos()) {
    const bool has_k =
        std::any_of(info->options.begin(), info->options.end(), [](const auto& option) { return option.name == "k"; });
    const auto metric = metrics().make(has_k ? info->name + "(k=5)" : info->name);
    const std::vector<double> values = compare_maps(*metric, schema, std::span<const float>(a), std::span<const float>(b));
    ASSERT_EQ(values.size(), kSamples);
    EXPECT_EQ(values, compare_maps(*metric, schema, std::span<const double>(wide_a), std::span<const double>(wide_b)));
    for (std::size_t i = 0; i < kSamples; ++i) {
      std::vector<double> x(kFeatures), y(kFeatures);
      for (std::size_t j = 0; j < kInputs; ++j) {
        x[j % kFeatures] += std::abs(wide_a[i * kInputs + j]);
        y[j % kFeatures] += std::abs(wide_b[i * kInputs + j]);
      }
      EXPECT_EQ(values[i], metric->compare({x, schema}, {y, schema})) << metric->name();
    }
  }
}

}  // namespace
}  // namespace holdfast::metric
