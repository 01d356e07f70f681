#include "../../src/metric/kernels/rank_correlation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "maps.h"

namespace holdfast::metric {
namespace {

int sign(double value) {
  return (value > 0) - (value < 0);
}

// tau-b pair by pair.
double kendall_by_pairs(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0, a_pairs = 0, b_pairs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      sum += sign(a[i] - a[j]) * sign(b[i] - b[j]);
      a_pairs += a[i] != a[j];
      b_pairs += b[i] != b[j];
    }
  }
  return sum / std::sqrt(a_pairs * b_pairs);
}

std::vector<double> mean_ranks(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double below = 0, equal = 0;
    for (const double other : values) below += other < value, equal += other == value;
    ranks.push_back(below + (equal + 1) / 2);
  }
  return ranks;
}

double pearson(const std::vector<double>& a, const std::vector<double>& b) {
  double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    ma += a[i] / static_cast<double>(a.size()), mb += b[i] / static_cast<double>(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ab += (a[i] - ma) * (b[i] - mb), aa += (a[i] - ma) * (a[i] - ma), bb += (b[i] - mb) * (b[i] - mb);
  return ab / std::sqrt(aa * bb);
}

TEST(RankCorrelation, FollowsTheDefinitionsWithAndWithoutTies) {
  RandomStream stream(1, "test");
  for (const std::int64_t size : {2, 3, 7, 8, 9, 16, 17, 100, 515}) {
    for (const std::uint64_t levels : {0U, 2U, 5U, 100U}) {
      for (int trial = 0; trial < 6; ++trial) {
        std::vector<double> a = random_map(stream, size, levels), b = random_map(stream, size, trial % 2 == 0 ? levels : 3);
        a[0] = 7, b[0] = 8;  // never constant
        EXPECT_NEAR(KendallOriginal(a).correlation(b), kendall_by_pairs(a, b), 1e-12);
        EXPECT_NEAR(SpearmanOriginal(a).correlation(b), pearson(mean_ranks(a), mean_ranks(b)), 1e-12);
      }
    }
  }
}

TEST(RankCorrelation, ComparingAllPairsCountsWhatSortingCounts) {
  RandomStream stream(5, "test");
  for (const std::int64_t size : {1, 2, 15, 16, 17, 33, 784, 1536, 3000}) {
    for (const std::uint64_t levels : {0U, 1U, 2U, 30U}) {
      const KendallOriginal original(random_map(stream, size, levels));
      const std::vector<double> perturbed = random_map(stream, size, levels == 30 ? 0 : levels);
      EXPECT_EQ(original.count_all_pairs(perturbed), original.count_by_sorting(perturbed));
    }
  }
}

TEST(RankCorrelation, OfTheSameOrderIsExactlyOneAndOfTheReverseMinusOne) {
  RandomStream stream(2, "test");
  for (const std::int64_t size : {2, 30, 784, 16384}) {
    const std::vector<double> a = random_map(stream, size);
    std::vector<double> cubed, reversed;
    for (const double value : a) cubed.push_back(value * value * value), reversed.push_back(2 - value);
    EXPECT_EQ(KendallOriginal(a).correlation(cubed), 1);
    EXPECT_EQ(SpearmanOriginal(a).correlation(cubed), 1);
    EXPECT_EQ(KendallOriginal(a).correlation(reversed), -1);
    EXPECT_EQ(SpearmanOriginal(a).correlation(reversed), -1);
  }
}

TEST(RankCorrelation, OfAConstantMapIsUndefined) {
  const std::vector<double> constant(5, 2.0), zero(5, 0.0), varied{1, 2, 3, 4, 5};
  for (const std::vector<double>* flat : {&constant, &zero}) {
    EXPECT_TRUE(std::isnan(KendallOriginal(*flat).correlation(varied)));
    EXPECT_TRUE(std::isnan(KendallOriginal(varied).correlation(*flat)));
    EXPECT_TRUE(std::isnan(SpearmanOriginal(*flat).correlation(varied)));
    EXPECT_TRUE(std::isnan(SpearmanOriginal(varied).correlation(*flat)));
  }
  EXPECT_TRUE(std::isnan(KendallOriginal(std::vector<double>{3}).correlation(std::vector<double>{4})))
      << "one feature has no order";
}

TEST(RankCorrelation, IsSymmetricOnTheMetricsOfGraphsWhereEveryWindowIsTheWhole) {
  const Schema schema = Schema::of(Layout::graph(5));
  RandomStream stream(3, "test");
  const std::vector<double> a = random_map(stream, 10), b = random_map(stream, 10);
  EXPECT_TRUE(std::isnan(compare("lens_kendall(w=2)", schema, a, b))) << "two steps reach every edge: both maps are flat";
  EXPECT_DOUBLE_EQ(compare("lens_kendall(w=1)", schema, a, b), compare("lens_kendall(w=1)", schema, b, a));
}

// Smoothed maps in random order correlate, because windows at the border hold less.
TEST(RankCorrelation, OfSmoothedRandomMapsIsAboveZero) {
  const Schema schema = Schema::of(Layout::grid(1, 10, 10));
  RandomStream stream(4, "test");
  const std::vector<double> map = random_map(stream, 100);
  const auto metric = metrics().make("lens_spearman(w=2)");
  EXPECT_GT(metric->chance({map, schema}).value(), 0.1);
  EXPECT_FALSE(metric->chance_is_exact());
  EXPECT_EQ(metric->chance({map, schema}), metric->chance({map, schema})) << "the same map, the same orders";
  EXPECT_EQ(metrics().make("spearman")->chance({map, schema}), 0.0);
}

}  // namespace
}  // namespace holdfast::metric
