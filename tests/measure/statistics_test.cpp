#include "holdfast/measure/statistics.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast::measure {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

MATCHER(IsNear, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-12;
}

// The numbers of SciPy come from scipy_statistics.py.
const std::vector<double> kA{0.91, 0.85, 0.77, 0.93, 0.60, 0.88, 0.71, 0.95, 0.83, 0.79, 0.90, 0.66};
const std::vector<double> kB{0.84, 0.85, 0.70, 0.95, 0.52, 0.80, 0.73, 0.88, 0.80, 0.70, 0.85, 0.64};

TEST(PairedComparison, ExactPValueEqualsSciPys) {
  const PairedComparison result = compare_paired(kA, kB, 0);
  EXPECT_TRUE(result.exact);
  EXPECT_DOUBLE_EQ(result.p_value, 0.0078125);
  EXPECT_NEAR(result.difference.mean, 0.04333333333333334, 1e-15);
  EXPECT_NEAR(result.first - result.second, result.difference.mean, 1e-15);
  EXPECT_GT(result.difference.low, 0);
  EXPECT_LT(result.difference.high, 0.09);
  EXPECT_EQ(result.difference.count, 12);
}

TEST(PairedComparison, TurnedRoundItIsTheSameWithTheOtherSign) {
  const PairedComparison one = compare_paired(kA, kB, 0), other = compare_paired(kB, kA, 0);
  EXPECT_EQ(one.p_value, other.p_value);
  EXPECT_NEAR(one.difference.mean, -other.difference.mean, 1e-15);
}

TEST(PairedComparison, EqualModelsDifferInNothing) {
  const PairedComparison result = compare_paired(kA, kA, 0);
  EXPECT_EQ(result.p_value, 1);
  EXPECT_EQ(result.difference.mean, 0);
}

TEST(PairedComparison, SamplesUndefinedForEitherAreLeftOut) {
  std::vector<double> first = kA, second = kB;
  first.push_back(kNaN), second.push_back(0.1);
  first.push_back(0.9), second.push_back(kNaN);
  const PairedComparison whole = compare_paired(kA, kB, 0), some = compare_paired(first, second, 0);
  EXPECT_EQ(some.p_value, whole.p_value);
  EXPECT_EQ(some.first, whole.first);
  const std::vector<double> nothing{kNaN};
  EXPECT_EQ(compare_paired(nothing, nothing, 0).p_value, 1);
  EXPECT_TRUE(std::isnan(compare_paired(nothing, nothing, 0).difference.mean));
}

// Few enough for both: 20 samples that differ, and the same with one more.
TEST(PairedComparison, SeededFlipsAgreeWithTheExactTest) {
  RandomStream stream(1, "test");
  std::vector<double> first, second;
  for (std::int64_t i = 0; i < kExactFlips; ++i) first.push_back(0.4 + stream.normal()), second.push_back(0);
  const double exact = compare_paired(first, second, 3).p_value;
  first.push_back(1e-9), second.push_back(0);
  const PairedComparison sampled = compare_paired(first, second, 3);
  EXPECT_FALSE(sampled.exact);
  EXPECT_NEAR(sampled.p_value, exact, 4 * std::sqrt(exact * (1 - exact) / 9999));
  EXPECT_EQ(sampled.p_value, compare_paired(first, second, 3).p_value);
}

// Where nothing differs but by chance, p-values below 0.05 come up once in twenty times.
TEST(PairedComparison, RejectsByChanceAsOftenAsItsLevelSays) {
  int rejected = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    RandomStream stream(7, "test", static_cast<std::uint64_t>(trial));
    std::vector<double> first, second;
    for (int i = 0; i < 10; ++i) {
      const double shared = stream.normal();
      first.push_back(shared + stream.normal()), second.push_back(shared + stream.normal());
    }
    rejected += compare_paired(first, second, 0).p_value <= 0.05;
  }
  EXPECT_GT(rejected, kTrials * 0.02);
  EXPECT_LT(rejected, kTrials * 0.09);
}

TEST(Corrections, EqualSciPysAndTheDefinition) {
  const std::vector<double> p{0.011, 0.02, 0.04, 0.0004, 0.3, 0.02};
  EXPECT_THAT(benjamini_hochberg(p), Pointwise(IsNear(), std::vector<double>{0.03, 0.03, 0.048, 0.0024, 0.3, 0.03}));
  EXPECT_THAT(holm(p), Pointwise(IsNear(), std::vector<double>{0.055, 0.08, 0.08, 0.0024, 0.3, 0.08}));
  EXPECT_TRUE(holm({}).empty());
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

TEST(Corrections, AreSetOnComparisons) {
  std::vector<PairedComparison> comparisons(2);
  comparisons[0].p_value = 0.02, comparisons[1].p_value = 0.03;
  correct(comparisons);
  EXPECT_EQ(comparisons[0].corrected, 0.04);
  EXPECT_EQ(comparisons[1].corrected, 0.04);
}

TEST(Correlation, EqualsSciPysWithTies) {
  const std::vector<double> x{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, y{2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5};
  EXPECT_NEAR(correlate(CorrelationKind::kPearson, x, y, 0).value, 0.09979900759721551, 1e-14);
  EXPECT_NEAR(correlate(CorrelationKind::kSpearman, x, y, 0).value, 0.1415796863640157, 1e-14);
  EXPECT_NEAR(correlate(CorrelationKind::kKendall, x, y, 0).value, 0.17109647770728875, 1e-14);
}

// Fisher's interval is right for normal pairs; the bootstrap must come near it.
TEST(Correlation, IntervalIsNearFishersForNormalPairs) {
  RandomStream stream(2, "test");
  std::vector<double> x, y;
  for (int i = 0; i < 400; ++i) {
    x.push_back(stream.normal());
    y.push_back(0.6 * x.back() + stream.normal());
  }
  const Correlation result = correlate(CorrelationKind::kPearson, x, y, 0);
  const double z = std::atanh(result.value), reach = 1.959963984540054 / std::sqrt(397.0);
  EXPECT_NEAR(result.low, std::tanh(z - reach), 0.02);
  EXPECT_NEAR(result.high, std::tanh(z + reach), 0.02);
}

TEST(Correlation, IsUndefinedForAConstantSideAndLeavesOutUndefinedPairs) {
  const std::vector<double> same(6, 0.1), x{1, 2, 3, 4, 5, 6}, with_gap{1, 2, kNaN, 4, 5, 6};
  for (const CorrelationKind kind : {CorrelationKind::kPearson, CorrelationKind::kSpearman, CorrelationKind::kKendall}) {
    EXPECT_TRUE(std::isnan(correlate(kind, same, x, 0).value));
    EXPECT_EQ(correlate(kind, with_gap, x, 0).count, 5);
    EXPECT_NEAR(correlate(kind, with_gap, x, 0).value, 1, 1e-15);
  }
}

// A sample that never swapped counts as later than all that did, and as tied with the others that never did.
TEST(Correlation, CensoredTimesRankLast) {
  const std::vector<std::int64_t> first_swap{3, -1, 10, -1, 7};
  const std::vector<double> times = censored_times(first_swap, 100);
  EXPECT_THAT(times, Pointwise(IsNear(), std::vector<double>{3, 101, 10, 101, 7}));
  const std::vector<double> thickness{0.1, 0.9, 0.5, 0.8, 0.3};
  // 10 pairs, one of them tied in time: tau-b = 9 / sqrt(9 * 10).
  EXPECT_NEAR(correlate(CorrelationKind::kKendall, times, thickness, 0).value, 9 / std::sqrt(90.0), 1e-14);
}

}  // namespace
}  // namespace holdfast::measure
