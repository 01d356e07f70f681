#include "holdfast/measure/proportion.h"

#include <cmath>

#include <gtest/gtest.h>

namespace holdfast::measure {
namespace {

// scipy.stats.binomtest(k, n).proportion_ci(method="exact"), SciPy 1.17.
TEST(ProportionInterval, EqualsScipysExactInterval) {
  struct Row {
    std::int64_t successes, count;
    double low, high;
  };
  for (const Row& row :
       {Row{9123, 10000, 0.9065852680653436, 0.9177732598049302}, Row{3, 10, 0.06673951117773447, 0.652452850060008},
        Row{1, 2, 0.01257911709367899, 0.987420882906321}, Row{569, 1000, 0.5376412404403915, 0.5999513775754167}}) {
    const Interval interval = proportion_interval(row.successes, row.count);
    EXPECT_NEAR(interval.low, row.low, 1e-11) << row.successes << " of " << row.count;
    EXPECT_NEAR(interval.high, row.high, 1e-11) << row.successes << " of " << row.count;
    EXPECT_EQ(interval.mean, static_cast<double>(row.successes) / static_cast<double>(row.count));
    EXPECT_EQ(interval.count, row.count);
  }
}

TEST(ProportionInterval, AllAndNoneHaveTheirClosedForm) {
  for (const std::int64_t count : {1, 57, 4000}) {
    const double limit = std::pow(0.025, 1.0 / static_cast<double>(count));
    EXPECT_NEAR(proportion_interval(count, count).low, limit, 1e-12);
    EXPECT_EQ(proportion_interval(count, count).high, 1);
    EXPECT_NEAR(proportion_interval(0, count).high, 1 - limit, 1e-12);
    EXPECT_EQ(proportion_interval(0, count).low, 0);
  }
}

TEST(ProportionInterval, LimitsLeaveTwoAndAHalfPercentOnEachSide) {
  for (std::int64_t successes = 1; successes < 60; ++successes) {
    const Interval interval = proportion_interval(successes, 60);
    EXPECT_NEAR(binomial_upper_tail(successes, 60, interval.low), 0.025, 1e-10);
    EXPECT_NEAR(1 - binomial_upper_tail(successes + 1, 60, interval.high), 0.025, 1e-10);
  }
}

TEST(BinomialUpperTail, CountsCoinTosses) {
  EXPECT_NEAR(binomial_upper_tail(3, 4, 0.5), 5.0 / 16, 1e-14);
  EXPECT_NEAR(binomial_upper_tail(1, 4, 0.5), 15.0 / 16, 1e-14);
  EXPECT_EQ(binomial_upper_tail(0, 4, 0.5), 1);
  EXPECT_EQ(binomial_upper_tail(5, 4, 0.5), 0);
}

TEST(ProportionInterval, NoSamplesSayNothing) {
  EXPECT_TRUE(std::isnan(proportion_interval(0, 0).low));
}

}  // namespace
}  // namespace holdfast::measure
