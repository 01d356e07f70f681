#include "holdfast/metric/top_k.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"
#include "holdfast/metric/metric.h"
#include "maps.h"
#include "support/errors.h"

namespace holdfast::metric {
namespace {

// By the definition: a stable sort by falling value, first k.
std::vector<std::int64_t> ranked_by_sorting(const std::vector<double>& values, std::int64_t k) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return value(a) > value(b); });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

std::vector<std::int64_t> set_by_sorting(const std::vector<double>& values, std::int64_t k) {
  std::vector<std::int64_t> order = ranked_by_sorting(values, k);
  std::sort(order.begin(), order.end());
  return order;
}

std::int64_t common(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return static_cast<std::int64_t>(both.size());
}

TEST(TopKSet, EqualsASortOnMapsWithAndWithoutTies) {
  RandomStream stream(1, "test");
  for (const std::uint64_t levels : {2U, 5U, 1U << 30}) {
    for (int trial = 0; trial < 300; ++trial) {
      const std::int64_t size = 1 + static_cast<std::int64_t>(stream.below(40));
      const std::int64_t k = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(size) + 1));
      const std::vector<double> values = random_map(stream, size, levels);
      EXPECT_EQ(top_k_set(values, k), set_by_sorting(values, k));
      EXPECT_EQ(top_k_ranked(values, k), ranked_by_sorting(values, k));
    }
  }
}

TEST(TopKSet, TiesGoToTheLowerIndex) {
  EXPECT_EQ(top_k_set(std::vector<double>{1, 1, 1, 1}, 2), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(top_k_set(std::vector<double>{0, 1, 2, 1, 1}, 3), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(TiedAt, ComparesTheLastOneInWithTheFirstOneOut) {
  const std::vector<double> values{3, 1, 2, 2};
  EXPECT_FALSE(tied_at(values, 1));
  EXPECT_TRUE(tied_at(values, 2));
  EXPECT_FALSE(tied_at(values, 3));
  EXPECT_FALSE(tied_at(values, 4)) << "nothing is left out";
}

// Both ways of counting: few comparisons, and a selection on a larger map.
TEST(TopSet, OverlapEqualsTheIntersectionOfTwoSorts) {
  RandomStream stream(2, "test");
  for (const std::int64_t size : {9, 30, 700}) {
    for (const std::uint64_t levels : {3U, 1U << 30}) {
      for (int trial = 0; trial < 100; ++trial) {
        const std::int64_t k = 1 + static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(size)));
        const std::vector<double> original = random_map(stream, size, levels);
        std::vector<double> perturbed = original;
        for (int change = 0; change < 3; ++change) {
          perturbed[stream.below(static_cast<std::uint64_t>(size))] = static_cast<double>(stream.below(levels));
        }
        const TopSet set(original, k);
        const std::int64_t expected = common(set_by_sorting(original, k), set_by_sorting(perturbed, k));
        EXPECT_EQ(set.overlap(perturbed), expected);
        EXPECT_EQ(set.holds(perturbed), expected == k);
      }
    }
  }
}

double top_k(const std::vector<double>& original, const std::vector<double>& perturbed, const std::string& call) {
  const Schema schema = Schema::of(Layout::vector(static_cast<std::int64_t>(original.size())));
  return metrics().make(call)->compare({original, schema}, {perturbed, schema});
}

TEST(TopK, IsTheShareThatStayed) {
  EXPECT_EQ(top_k({9, 8, 7, 1, 0}, {9, 0, 7, 8, 1}, "top_k(k=3)"), 2.0 / 3);
  EXPECT_EQ(top_k({9, 8, 7, 1, 0}, {0, 0, 0, 9, 9}, "top_k(k=2)"), 0);
  EXPECT_EQ(top_k({9, 8, 7}, {1, 2, 3}, "top_k(k=3)"), 1) << "k = n compares everything with everything";
}

TEST(TopK, DoesNotDependOnTheScaleOfAMap) {
  EXPECT_EQ(top_k({9, 8, 7, 1}, {9e-30, 1e-30, 7e-30, 8e-30}, "top_k(k=2)"), top_k({9, 8, 7, 1}, {9, 1, 7, 8}, "top_k(k=2)"));
}

TEST(TopK, ChanceIsTheMeanOverRandomOrders) {
  RandomStream stream(3, "test");
  const std::int64_t features = 12;
  const Schema schema = Schema::of(Layout::vector(features));
  const auto metric = metrics().make("top_k(k=5)");
  std::vector<double> original(static_cast<std::size_t>(features));
  for (double& value : original) value = stream.uniform();
  double sum = 0;
  constexpr int kTrials = 20000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<std::int64_t> order = stream.permutation(features);
    const std::vector<double> random(order.begin(), order.end());
    sum += metric->compare({original, schema}, {random, schema});
  }
  // The standard error is below 0.0013.
  EXPECT_NEAR(sum / kTrials, metric->chance({original, schema}).value(), 0.006);
}

TEST(TopK, NameAlwaysShowsK) {
  EXPECT_EQ(metrics().make("top_k")->name(), "top_k(k=8)");
  EXPECT_EQ(metrics().make("top_k(k=8)")->name(), "top_k(k=8)");
}

TEST(TopK, RefusesMoreThanTheMapHas) {
  const auto metric = metrics().make("top_k(k=40)");
  EXPECT_ERROR(metric->check(Schema::of(Layout::vector(30))), kUsage, "top_k(k=40): the map has 30 features; choose k <= 30");
  EXPECT_NO_THROW(metric->check(Schema::of(Layout::vector(40))));
}

TEST(TopK, RefusesKBelowOne) {
  EXPECT_ERROR(metrics().make("top_k(k=0)"), kUsage, "k must be >= 1");
}

}  // namespace
}  // namespace holdfast::metric
