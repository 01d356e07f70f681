#include "holdfast/metric/levels.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::metric {
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

// Of values in [0, 1] that are all 1, the interval is the exact one of a proportion: 57 of 57 gives [0.937, 1].
TEST(MeanInterval, OfEqualValuesLeavesRoomForWhatWasNotSeen) {
  const Interval perfect = mean_interval(std::vector<double>(57, 1.0), 0, 0, 1);
  EXPECT_NEAR(perfect.low, 0.9373, 1e-4);
  EXPECT_EQ(perfect.high, 1);
  EXPECT_EQ(perfect.mean, 1);
  const Interval middle = mean_interval(std::vector<double>{0.1, 0.1, kNothing, 0.1}, 0, -1, 1);
  const double unseen = 1 - std::cbrt(0.025);
  EXPECT_DOUBLE_EQ(middle.low, 0.1 - unseen * 1.1);
  EXPECT_DOUBLE_EQ(middle.high, 0.1 + unseen * 0.9);
  const Interval distance = mean_interval(std::vector<double>(4, 0.5), 0, 0, std::numeric_limits<double>::infinity());
  EXPECT_LT(distance.low, 0.5);
  EXPECT_EQ(distance.high, 0.5) << "nothing is known about how far a value can go";
}

TEST(MeanInterval, OfOneValueIsNone) {
  const Interval one = mean_interval(std::vector<double>{1}, 0, 0, 1);
  EXPECT_EQ(one.mean, 1);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high));
}

TEST(MeanInterval, OfDifferentValuesDoesNotDependOnTheRange) {
  const std::vector<double> values{0, 0.5, 1, 1};
  EXPECT_EQ(mean_interval(values, 3, 0, 1).low, mean_interval(values, 3).low);
  EXPECT_EQ(mean_interval(values, 3, 0, 1).median, 0.75);
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
  const Levels level = compute_levels(*top_2_, maps, {}, {});
  EXPECT_DOUBLE_EQ(level.between, (0.5 + 0.5 + 0) / 3);
  EXPECT_TRUE(std::isnan(level.between_same_class));
  EXPECT_EQ(level.distinct_top_sets, 3);
}

TEST_F(LevelsTest, BetweenOfOneClassStaysInTheClass) {
  const MapBatch maps = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}, {0, 9, 8, 0}});
  const std::vector<std::int64_t> labels{1, 0, 1, 0};
  EXPECT_DOUBLE_EQ(compute_levels(*top_2_, maps, labels, {}).between_same_class, (0.0 + 1.0) / 2);
}

TEST_F(LevelsTest, BetweenIsUndefinedForOneSample) {
  EXPECT_TRUE(std::isnan(compute_levels(*top_2_, batch_of(schema_, {{1, 2, 3, 4}}), {}, {}).between));
}

TEST_F(LevelsTest, BetweenOnSampledPairsIsCloseToAllPairsAndKeyedBySeed) {
  RandomStream stream(5, "test");
  MapBatch maps{.count = 120, .schema = &schema_};
  for (int i = 0; i < 480; ++i) maps.values.push_back(stream.uniform());
  const double all = compute_levels(*top_2_, maps, {}, {.pairs = 120 * 119}).between;
  const double some = compute_levels(*top_2_, maps, {}, {.pairs = 3000, .seed = 1}).between;
  EXPECT_NEAR(some, all, 0.03);
  EXPECT_EQ(some, compute_levels(*top_2_, maps, {}, {.pairs = 3000, .seed = 1}).between);
  EXPECT_NE(some, compute_levels(*top_2_, maps, {}, {.pairs = 3000, .seed = 2}).between);
}

// An explanation that is the same for every input is trivially robust, and the levels say so.
TEST_F(LevelsTest, IdenticalMapsHaveBetweenOneAndNoSpecificValue) {
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {4, 3, 2, 1}, {8, 6, 4, 2}});
  const Levels level = compute_levels(*top_2_, maps, {}, {});
  EXPECT_EQ(level.between, 1);
  EXPECT_EQ(level.distinct_top_sets, 1);
  const Assessment result = assess(*top_2_, maps, maps, level, 0);
  EXPECT_EQ(result.value.mean, 1);
  EXPECT_EQ(result.adjusted, 1.0);
  EXPECT_FALSE(result.specific.has_value());
  EXPECT_TRUE(to_json(result)["specific"].is_null());

  const MapBatch moved = batch_of(schema_, {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}});
  EXPECT_FALSE(assess(*top_2_, maps, moved, level, 0).specific.has_value()) << "broken, but still nothing to compare with";
}

TEST_F(LevelsTest, AdjustedAndSpecificAreMeansOverSamples) {
  const MapBatch clean = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}});
  const MapBatch moved = batch_of(schema_, {{9, 8, 0, 0}, {9, 8, 0, 0}, {9, 8, 0, 0}});  // values 1, 1/2, 0
  const Assessment result = assess(*top_2_, clean, moved, compute_levels(*top_2_, clean, {}, {}), 0);
  EXPECT_EQ(result.values, (std::vector<double>{1, 0.5, 0}));
  EXPECT_DOUBLE_EQ(result.chance.value(), 0.5);
  EXPECT_DOUBLE_EQ(result.adjusted.value(), (1.0 + 0.0 - 1.0) / 3);
  const double between = 1.0 / 3;
  EXPECT_DOUBLE_EQ(result.specific.value(), (0.5 - between) / (1 - between));
}

TEST_F(LevelsTest, WhereChanceIsOneNothingIsAdjusted) {
  const auto top_4 = metrics().make("top_k(k=4)");
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {1, 2, 3, 4}});
  const Assessment result = assess(*top_4, maps, maps, compute_levels(*top_4, maps, {}, {}), 0);
  EXPECT_EQ(result.chance, 1.0);
  EXPECT_FALSE(result.adjusted.has_value());
}

TEST_F(LevelsTest, TiedShareCountsMapsWhoseLastOneInEqualsTheFirstOneOut) {
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {4, 3, 3, 1}, {0, 0, 0, 0}, {4, 4, 1, 0}});
  EXPECT_DOUBLE_EQ(compute_levels(*top_2_, maps, {}, {}).tied_share, 0.5);
}

TEST_F(LevelsTest, TiesOfThePerturbedMapsAreCountedToo) {
  const MapBatch clean = batch_of(schema_, {{4, 3, 2, 1}, {1, 2, 3, 4}}), moved = batch_of(schema_, {{1, 1, 1, 1}, {1, 2, 3, 4}});
  const Assessment result = assess(*top_2_, clean, moved, compute_levels(*top_2_, clean, {}, {}), 0);
  EXPECT_EQ(result.tied_share, 0);
  EXPECT_EQ(result.tied_perturbed, 0.5);
  EXPECT_EQ(to_json(result)["tied_perturbed"], 0.5);
}

TEST_F(LevelsTest, ProportionalMapsAreIdenticalUpToRounding) {
  const auto cosine = metrics().make("cosine");
  const std::vector<double> one{0.1, 0.7, 0.2, 0.3};
  std::vector<std::vector<double>> rows(5);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const double value : one) rows[i].push_back(value * (0.3 + 0.1 * static_cast<double>(i)));
  }
  const MapBatch maps = batch_of(schema_, rows);
  const MapBatch moved = batch_of(schema_, std::vector<std::vector<double>>(5, {0.3, 2.1, 0.6, 0.9}));
  const Assessment result = assess(*cosine, maps, moved, compute_levels(*cosine, maps, {}, {}), 0);
  EXPECT_NEAR(result.between.value(), 1, 1e-12);
  EXPECT_FALSE(result.specific.has_value());
  EXPECT_NEAR(result.value.low, 1 - (1 - std::pow(0.025, 1.0 / 5)) * (1 - cosine->floor()), 1e-9);
}

TEST_F(LevelsTest, DistancesAreAdjustedTowardsZero) {
  const auto metric = metrics().make("lens_distance(k=2,w=0)");
  const MapBatch clean = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}});
  const MapBatch moved = batch_of(schema_, {{9, 8, 0, 0}, {9, 8, 0, 0}, {9, 8, 0, 0}});  // distances 0, 1, 2
  const Assessment result = assess(*metric, clean, moved, compute_levels(*metric, clean, {}, {}), 0);
  EXPECT_EQ(result.values, (std::vector<double>{0, 1, 2}));
  EXPECT_DOUBLE_EQ(result.chance.value(), 1);
  EXPECT_DOUBLE_EQ(result.adjusted.value(), (1.0 + 0.0 - 1.0) / 3) << "1: nothing moved, 0: as far as a random map";
  const double between = 2 * 2.0 / 3;
  EXPECT_DOUBLE_EQ(result.between.value(), between);
  EXPECT_DOUBLE_EQ(result.specific.value(), (between - 1) / between);
}

TEST_F(LevelsTest, UndefinedValuesAreLeftOutAndCounted) {
  const auto metric = metrics().make("kendall");
  const MapBatch clean = batch_of(schema_, {{1, 2, 3, 4}, {5, 5, 5, 5}, {4, 3, 2, 1}});
  const Assessment result = assess(*metric, clean, clean, compute_levels(*metric, clean, {}, {}), 0);
  EXPECT_EQ(result.value.count, 2);
  EXPECT_EQ(result.value.mean, 1);
  EXPECT_EQ(result.between.value(), -1) << "the constant map is in no pair that counts";
  const Json json = to_json(result);
  EXPECT_TRUE(json["values"][1].is_null());
  EXPECT_EQ(json["undefined"], 1);
}

TEST_F(LevelsTest, DiverseSetsReportHowManyWereFound) {
  const auto metric = metrics().make("top_k_div(k=3,diversity=1)");
  const MapBatch clean = batch_of(schema_, {{0, 9, 1, 8}, {0, 9, 0, 0}}), moved = batch_of(schema_, {{9, 0, 0, 8}, {9, 0, 1, 2}});
  const Assessment result = assess(*metric, clean, moved, compute_levels(*metric, clean, {}, {}), 0);
  EXPECT_EQ(result.found.value(), 2);
  EXPECT_EQ(result.found_perturbed.value(), 2);
  EXPECT_FALSE(result.chance_is_exact);
  EXPECT_EQ(to_json(result)["found"], 2.0);
  EXPECT_TRUE(to_json(assess(*top_2_, clean, moved, compute_levels(*top_2_, clean, {}, {}), 0))["found"].is_null());
}

TEST_F(LevelsTest, JsonHasTheKeysThatScriptsRead) {
  const MapBatch maps = batch_of(schema_, {{4, 3, 2, 1}, {1, 2, 3, 4}});
  const Json json = to_json(assess(*top_2_, maps, maps, compute_levels(*top_2_, maps, {}, {}), 0));
  for (const char* key :
       {"name", "mean", "low", "high", "median", "undefined", "chance", "adjusted", "between", "between_same_class", "specific",
        "distinct_top_sets", "tied_share", "tied_perturbed", "found", "found_perturbed", "values"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["name"], "top_k(k=2)");
  EXPECT_EQ(json["values"], (Json{1.0, 1.0}));
  EXPECT_EQ(json["between"], 0.0);
}

}  // namespace
}  // namespace holdfast::metric
