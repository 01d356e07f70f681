// Lift, effective sets and own advantage from their definitions (metric/levels.h).
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"
#include "holdfast/metric/levels.h"

namespace holdfast::metric {
namespace {

const double kUnknown = std::numeric_limits<double>::quiet_NaN();
using Sets = std::vector<std::vector<std::int64_t>>;

TEST(EffectiveSets, AreOneWhereAllSamplesHaveOneSet) {
  const Sets same(20, {1, 4});
  const Interval found = effective_sets({same, same}, 0);
  EXPECT_DOUBLE_EQ(found.mean, 1);
  EXPECT_DOUBLE_EQ(found.low, 1);
  EXPECT_DOUBLE_EQ(found.high, 1);
}

TEST(EffectiveSets, OfEqualSharesAreTheirNumber) {
  const Sets four{{0, 1}, {0, 2}, {0, 3}, {1, 2}};
  EXPECT_DOUBLE_EQ(effective_sets({four, four}, 0).mean, 4);
}

TEST(EffectiveSets, CountThoseThatDidNotHoldAsOne) {
  // Shares 2/4 of {0,1}, which holds, and 2/4 broken: the broken ones' clean sets differ, and their new sets too.
  const Sets clean{{0, 1}, {0, 1}, {0, 2}, {0, 3}}, moved{{0, 1}, {0, 1}, {1, 2}, {1, 3}};
  EXPECT_DOUBLE_EQ(effective_sets({clean, moved}, 0).mean, 2);
  // All broken is one set, however different they were.
  EXPECT_DOUBLE_EQ(effective_sets({{{0, 1}, {0, 2}, {0, 3}}, {{1, 2}, {1, 2}, {1, 2}}}, 0).mean, 1);
}

TEST(EffectiveSets, AreTheExponentialOfTheEntropy) {
  Sets sets;
  for (int i = 0; i < 12; ++i) sets.push_back({i < 6 ? 0 : i < 9 ? 1 : i < 11 ? 2 : 3});
  const double entropy =
      -(0.5 * std::log(0.5) + 0.25 * std::log(0.25) + 1.0 / 6 * std::log(1.0 / 6) + 1.0 / 12 * std::log(1.0 / 12));
  const Interval found = effective_sets({sets, sets}, 3);
  EXPECT_NEAR(found.mean, std::exp(entropy), 1e-12);
  EXPECT_LT(found.low, found.mean);
  EXPECT_GT(found.high, found.low);
}

class OwnLevelsTest : public testing::Test {
 protected:
  static MapBatch batch_of(const Schema& schema, const std::vector<std::vector<double>>& rows) {
    MapBatch maps{.count = static_cast<std::int64_t>(rows.size()), .schema = &schema};
    for (const auto& row : rows) maps.values.insert(maps.values.end(), row.begin(), row.end());
    return maps;
  }
  static Assessment assessed(const Metric& metric, const MapBatch& clean, const MapBatch& moved) {
    return assess(metric, clean, moved, compute_levels(metric, clean, {}, {}), 0);
  }

  Schema schema_ = Schema::of(Layout::vector(4));
  std::unique_ptr<Metric> top_2_ = metrics().make("top_k(k=2)");
};

TEST_F(OwnLevelsTest, LiftIsTheValueMinusBetween) {
  // Sets {0,1}, {1,2}, {2,3}: between 1/3. Attacked: the first holds, the second keeps one of two, the third none.
  const MapBatch clean = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}});
  const MapBatch moved = batch_of(schema_, {{9, 8, 0, 0}, {9, 8, 0, 0}, {9, 8, 0, 0}});
  const Assessment result = assessed(*top_2_, clean, moved);
  ASSERT_TRUE(result.lift);
  EXPECT_DOUBLE_EQ(result.lift->mean, (1 + 0.5 + 0) / 3 - 1.0 / 3);
  EXPECT_LT(result.lift->low, result.lift->mean);
  EXPECT_GT(result.lift->high, result.lift->mean);
  ASSERT_TRUE(result.effective_sets);
  EXPECT_DOUBLE_EQ(result.effective_sets->mean, std::exp(-(1.0 / 3 * std::log(1.0 / 3) + 2.0 / 3 * std::log(2.0 / 3))));
  const Json json = to_json(result);
  EXPECT_DOUBLE_EQ(json["lift"], result.lift->mean);
  EXPECT_EQ(json["lift_interval"].size(), 2);
  EXPECT_TRUE(json["own_advantage"].is_null() && json["own_advantage_interval"].is_null());
  EXPECT_TRUE(json["robust_and_specific"].is_null()) << "without a model nothing is known about own advantage";
}

TEST_F(OwnLevelsTest, LiftOfOneExplanationForAllIsZero) {
  const MapBatch maps = batch_of(schema_, {{9, 8, 0, 0}, {9, 8, 1, 0}, {9, 8, 0, 1}});
  const Assessment result = assessed(*top_2_, maps, maps);
  EXPECT_DOUBLE_EQ(result.lift->mean, 0);
  EXPECT_DOUBLE_EQ(result.effective_sets->mean, 1);
  EXPECT_FALSE(result.specific);
  // Of three equal values 1 nobody knows that all others are 1, too.
  EXPECT_NEAR(result.lift->low, -(1 - std::cbrt(0.025)), 1e-12);
}

TEST_F(OwnLevelsTest, OneSampleHasNoLift) {
  const MapBatch one = batch_of(schema_, {{9, 8, 0, 0}});
  const Assessment result = assessed(*top_2_, one, one);
  EXPECT_FALSE(result.lift);
  EXPECT_DOUBLE_EQ(result.effective_sets->mean, 1);
  EXPECT_TRUE(to_json(result)["effective_sets_interval"].is_null());
}

TEST_F(OwnLevelsTest, RankMetricsAndImagesHaveNoEffectiveSets) {
  const MapBatch maps = batch_of(schema_, {{9, 8, 0, 0}, {0, 9, 8, 1}, {0, 1, 9, 8}});
  EXPECT_FALSE(assessed(*metrics().make("spearman"), maps, maps).effective_sets);
  EXPECT_TRUE(assessed(*metrics().make("spearman"), maps, maps).lift);
  const Schema image = Schema::of(Layout::grid(1, 2, 2));
  const MapBatch pictures = batch_of(image, {{9, 8, 0, 0}, {0, 9, 8, 0}, {0, 0, 9, 8}});
  EXPECT_FALSE(assessed(*top_2_, pictures, pictures).effective_sets);
}

// The interval takes the between level's own error along: it is wider than that of the values, which are all 1 but for some.
TEST_F(OwnLevelsTest, TheIntervalOfLiftCoversTheTruth) {
  int covered = 0;
  const int trials = 60;
  for (int trial = 0; trial < trials; ++trial) {
    RandomStream stream(static_cast<std::uint64_t>(trial), "lift test");
    std::vector<std::vector<double>> clean, moved;
    for (int i = 0; i < 60; ++i) {  // two kinds of sets that share nothing, 1:1; one in four breaks altogether
      const bool first = stream.uniform() < 0.5, broken = stream.uniform() < 0.25;
      const std::vector<double> here{9, 8, 0, 0}, there{0, 0, 9, 8};
      clean.push_back(first ? here : there);
      moved.push_back(first != broken ? here : there);
    }
    const Assessment result = assessed(*top_2_, batch_of(schema_, clean), batch_of(schema_, moved));
    covered += result.lift->low <= 0.25 && 0.25 <= result.lift->high ? 1 : 0;  // 0.75 - 0.5
  }
  EXPECT_GE(covered, 51);  // 95 % of 60 is 57; fewer than 51 has a probability of 0.001
}

TEST(OwnAdvantage, IsTheShareByWhichTheOwnFeaturesDoMore) {
  const std::vector<double> own{0.4, 0.2, 0.6, kUnknown}, other{0.1, 0.2, 0.3, 0.9};
  const Interval found = own_advantage(own, other, 0);
  EXPECT_DOUBLE_EQ(found.mean, (1.2 - 0.6) / 1.2);
  EXPECT_EQ(found.count, 3);
  EXPECT_LE(found.low, found.mean);
  EXPECT_GE(found.high, found.mean);
}

TEST(OwnAdvantage, IsNegativeWhereOtherFeaturesDoMoreAndUndefinedWhereOwnOnesDoNothing) {
  EXPECT_DOUBLE_EQ(own_advantage(std::vector{0.1, 0.1}, std::vector{0.3, 0.1}, 0).mean, -1);
  EXPECT_TRUE(std::isnan(own_advantage(std::vector{0.0, 0.0}, std::vector{0.3, 0.1}, 0).mean));
  EXPECT_TRUE(std::isnan(own_advantage(std::vector<double>{}, std::vector<double>{}, 0).mean));
}

TEST(RobustAndSpecific, HoldsOnlyWhereAllThreeSurelyDo) {
  const auto judged = [](Interval lift, Interval sets, Interval own) {
    return robust_and_specific({.lift = lift, .effective_sets = sets, .own_advantage = own}).value();
  };
  const Interval lift{0.3, 0.2, 0.4, 9}, sets{4, 3, 5, 9}, own{0.1, 0.01, 0.2, 9};
  EXPECT_EQ(judged(lift, sets, own), Judgement::kHolds);
  EXPECT_EQ(judged({0.3, 0.199, 0.4, 9}, sets, own), Judgement::kNotDecided);
  EXPECT_EQ(judged({0.1, 0.05, 0.199, 9}, sets, own), Judgement::kDoesNotHold);
  EXPECT_EQ(judged(lift, {2, 1, 2.9, 9}, own), Judgement::kDoesNotHold);
  EXPECT_EQ(judged(lift, sets, {0, 0, 0, 9}), Judgement::kDoesNotHold) << "equal is no advantage";
  EXPECT_EQ(judged(lift, sets, {0.1, 0, 0.2, 9}), Judgement::kNotDecided);
  EXPECT_EQ(judged(lift, sets, {0.1, kUnknown, kUnknown, 1}), Judgement::kNotDecided) << "no interval, nothing sure";
  EXPECT_FALSE(robust_and_specific({.lift = lift, .effective_sets = sets}));
  EXPECT_FALSE(robust_and_specific(
      {.lift = lift, .effective_sets = sets, .own_advantage = own, .direction = Direction::kLowerIsMoreAlike}));
}

}  // namespace
}  // namespace holdfast::metric
