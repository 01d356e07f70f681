#include "holdfast/metric/levels.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"
#include "holdfast/metric/top_k.h"

namespace holdfast {
namespace {

const double kNothing = std::numeric_limits<double>::quiet_NaN();

class LevelsTest : public testing::Test {
 protected:
  static MapBatch batch_of(const Schema& schema, const std::vector<std::vector<double>>& rows) {
    MapBatch maps{.count = static_cast<std::int64_t>(rows.size()), .schema = &schema};
    for (const auto& row : rows) maps.values.insert(maps.values.end(), row.begin(), row.end());
    return maps;
  }

  Schema schema_ = Schema::of(Layout::vector(4));
  std::unique_ptr<Metric> top_2_ = metrics().make("top_k(k=2)");
};

TEST(MeanInterval, LeavesUndefinedValuesOut) {
  const Interval interval = mean_interval(std::vector<double>{1, kNothing, 0, 1, kNothing, 0}, 0);
  EXPECT_EQ(interval.count, 4);
  EXPECT_EQ(interval.mean, 0.5);
  EXPECT_LT(interval.low, 0.5);
  EXPECT_GT(interval.high, 0.5);
}

TEST(MeanInterval, OfNothingIsUndefined) {
  const Interval interval = mean_interval(std::vector<double>{kNothing}, 0);
  EXPECT_EQ(interval.count, 0);
  EXPECT_TRUE(std::isnan(interval.mean) && std::isnan(interval.low) && std::isnan(interval.high));
}

TEST(MeanInterval, OfEqualValuesIsAPoint) {
  const Interval interval = mean_interval(std::vector<double>(7, 0.25), 3);
  EXPECT_EQ(interval.mean, 0.25);
  EXPECT_EQ(interval.low, 0.25);
  EXPECT_EQ(interval.high, 0.25);
}

TEST(MeanInterval, IsKeyedByTheSeed) {
  std::vector<double> values;
  RandomStream stream(9, "test");
  for (int i = 0; i < 50; ++i) values.push_back(stream.normal());
  const Interval first = mean_interval(values, 1), again = mean_interval(values, 1), other = mean_interval(values, 2);
  EXPECT_EQ(first.low, again.low);
  EXPECT_EQ(first.high, again.high);
  EXPECT_NE(first.low, other.low);
}

// For a normal sample the percentile bootstrap is close to mean +- 1.96 standard errors.
TEST(MeanInterval, HasTheWidthOfANormalMean) {
  std::vector<double> values;
  RandomStream stream(4, "test");
  for (int i = 0; i < 400; ++i) values.push_back(stream.normal());
  const Interval interval = mean_interval(values, 0);
  double variance = 0;
  for (const double value : values) variance += (value - interval.mean) * (value - interval.mean) / 400;
  const double half = 1.96 * std::sqrt(variance / 400);
  EXPECT_NEAR(interval.mean - interval.low, half, 0.1 * half);
  EXPECT_NEAR(interval.high - interval.mean, half, 0.1 * half);
}

TEST_F(LevelsTest, BetweenIsTheMeanOverAllOrderedPairsOfDifferentSamples) {
  // Top-2 sets {0,1}, {1,2}, {2,3}: neighbours share one of two, the ends nothing.
  const MapBatch maps = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}});
  const Baseline level = baseline(*top_2_, maps, {}, {});
  EXPECT_DOUBLE_EQ(level.between, (0.5 + 0.5 + 0) / 3);
  EXPECT_TRUE(std::isnan(level.between_same_class));
  EXPECT_EQ(level.distinct_top_sets, 3);
}

TEST_F(LevelsTest, BetweenOfOneClassStaysInTheClass) {
  const MapBatch maps = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}, {0, 9, 8, 0}});
  const std::vector<std::int64_t> labels{1, 0, 1, 0};
  EXPECT_DOUBLE_EQ(baseline(*top_2_, maps, labels, {}).between_same_class, (0.0 + 1.0) / 2);
}

TEST_F(LevelsTest, BetweenIsUndefinedForOneSample) {
  EXPECT_TRUE(std::isnan(baseline(*top_2_, batch_of(schema_, {{1, 2, 3, 4}}), {}, {}).between));
}

TEST_F(LevelsTest, BetweenOnSampledPairsIsCloseToAllPairsAndKeyedBySeed) {
  RandomStream stream(5, "test");
  MapBatch maps{.count = 120, .schema = &schema_};
  for (int i = 0; i < 480; ++i) maps.values.push_back(stream.uniform());
  const double all = baseline(*top_2_, maps, {}, {.pairs = 120 * 119}).between;
  const double some = baseline(*top_2_, maps, {}, {.pairs = 3000, .seed = 1}).between;
  EXPECT_NEAR(some, all, 0.03);
  EXPECT_EQ(some, baseline(*top_2_, maps, {}, {.pairs = 3000, .seed = 1}).between);
  EXPECT_NE(some, baseline(*top_2_, maps, {}, {.pairs = 3000, .seed = 2}).between);
}

// An explanation that is the same for every input is trivially robust, and the levels say so.
TEST_F(LevelsTest, IdenticalMapsHaveBetweenOneAndNoSpecificValue) {
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {4, 3, 2, 1}, {8, 6, 4, 2}});
  const Baseline level = baseline(*top_2_, maps, {}, {});
  EXPECT_EQ(level.between, 1);
  EXPECT_EQ(level.distinct_top_sets, 1);
  const Assessment result = assess(*top_2_, maps, maps, level, 0);
  EXPECT_EQ(result.value.mean, 1);
  EXPECT_EQ(result.adjusted, 1.0);
  EXPECT_FALSE(result.specific.has_value());
  EXPECT_TRUE(to_json(result)["specific"].is_null());
}

TEST_F(LevelsTest, AdjustedAndSpecificAreMeansOverSamples) {
  const MapBatch clean = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}});
  const MapBatch moved = batch_of(schema_, {{9, 8, 0, 0}, {9, 8, 0, 0}, {9, 8, 0, 0}});  // values 1, 1/2, 0
  const Assessment result = assess(*top_2_, clean, moved, baseline(*top_2_, clean, {}, {}), 0);
  EXPECT_EQ(result.values, (std::vector<double>{1, 0.5, 0}));
  EXPECT_DOUBLE_EQ(result.chance.value(), 0.5);
  EXPECT_DOUBLE_EQ(result.adjusted.value(), (1.0 + 0.0 - 1.0) / 3);
  const double between = 1.0 / 3;
  EXPECT_DOUBLE_EQ(result.specific.value(), (0.5 - between) / (1 - between));
}

TEST_F(LevelsTest, WhereChanceIsOneNothingIsAdjusted) {
  const auto top_4 = metrics().make("top_k(k=4)");
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {1, 2, 3, 4}});
  const Assessment result = assess(*top_4, maps, maps, baseline(*top_4, maps, {}, {}), 0);
  EXPECT_EQ(result.chance, 1.0);
  EXPECT_FALSE(result.adjusted.has_value());
}

TEST_F(LevelsTest, TiedShareCountsMapsWhoseLastOneInEqualsTheFirstOneOut) {
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {4, 3, 3, 1}, {0, 0, 0, 0}, {4, 4, 1, 0}});
  EXPECT_DOUBLE_EQ(baseline(*top_2_, maps, {}, {}).tied_share, 0.5);
}

TEST_F(LevelsTest, JsonHasTheKeysThatScriptsRead) {
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {1, 2, 3, 4}});
  const Json json = to_json(assess(*top_2_, maps, maps, baseline(*top_2_, maps, {}, {}), 0));
  for (const char* key : {"name", "mean", "low", "high", "chance", "adjusted", "between", "specific", "values"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["name"], "top_k(k=2)");
  EXPECT_EQ(json["values"], (Json{1.0, 1.0}));
  EXPECT_EQ(json["between"], 0.0);
}

}  // namespace
}  // namespace holdfast
