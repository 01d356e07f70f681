// Every registered metric is held to the contract of metric.h. Metrics are found through the registry; there is no list to edit.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"
#include "holdfast/metric/metric.h"
#include "support/method_calls.h"

namespace holdfast::metric {
namespace {

using testing_support::method_of;

// Each metric with its default options, but for k: the maps of this suite have 12 features.
std::vector<std::string> metric_calls() {
  std::vector<std::string> calls = testing_support::calls_beside({}, metrics(), {{"k", "4"}});
  calls.push_back("lens_distance(k=2x5,w=0x2,alpha=0.2x0.8,form=u)");
  return calls;
}

// Metrics whose value does not change when the maps are exchanged. Diverse sets may differ in size.
const std::vector<std::string> kSymmetric{"top_k",        "spearman",      "kendall", "lens_spearman",
                                          "lens_kendall", "lens_distance", "cosine",  "l2"};

class MetricConformance : public testing::TestWithParam<std::string> {
 protected:
  std::vector<double> random_map(std::uint64_t index) const {
    RandomStream stream(7, "map", index);
    std::vector<double> values(12);
    for (double& value : values) value = stream.uniform();
    return values;
  }
  double compare(const std::vector<double>& a, const std::vector<double>& b) const {
    return metric_->compare({a, schema_}, {b, schema_});
  }

  Schema schema_ = Schema::of(Layout::vector(12));
  std::unique_ptr<Metric> metric_ = metrics().make(GetParam());
};

TEST_P(MetricConformance, DescribesItselfAndFitsTheMaps) {
  EXPECT_FALSE(metrics().info(method_of(GetParam())).summary.empty());
  EXPECT_NO_THROW(metric_->check(schema_));
}

TEST_P(MetricConformance, IdenticalMapsArePerfect) {
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_NEAR(compare(random_map(i), random_map(i)), metric_->perfect(), 1e-12);
}

TEST_P(MetricConformance, ValuesLieBetweenFloorAndPerfect) {
  const bool higher = metric_->direction() == Direction::kHigherIsMoreAlike;
  double best = metric_->floor();
  for (std::uint64_t i = 0; i < 100; ++i) {
    const double value = compare(random_map(2 * i), random_map(2 * i + 1));
    EXPECT_TRUE(higher ? value <= metric_->perfect() : value >= metric_->perfect()) << value;
    EXPECT_TRUE(higher ? value >= metric_->floor() : value <= metric_->floor() + 1e-12) << value;
    best = higher ? std::max(best, value) : std::min(best, value);
  }
  EXPECT_NE(best, metric_->floor()) << "random maps all score the floor: the metric sees nothing";
}

TEST_P(MetricConformance, PreparedGivesTheSameValue) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::vector<double> original = random_map(i), perturbed = random_map(i + 1000);
    std::unique_ptr<PreparedMetric> prepared;
    {
      const std::vector<double> temporary = original;  // what is prepared must not point into the caller's map
      prepared = metric_->prepare({temporary, schema_});
    }
    EXPECT_EQ(prepared->value({perturbed, schema_}), compare(original, perturbed));
  }
}

TEST_P(MetricConformance, TheScaleOfAMapDoesNotMatter) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::vector<double> a = random_map(i), b = random_map(i + 1000);
    std::vector<double> scaled = b;
    for (double& value : scaled) value *= 0.25;
    EXPECT_NEAR(compare(a, b), compare(a, scaled), 1e-12);
  }
}

TEST_P(MetricConformance, SymmetricMetricsAreSymmetric) {
  if (std::ranges::find(kSymmetric, method_of(GetParam())) == kSymmetric.end()) GTEST_SKIP() << "it need not be";
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::vector<double> a = random_map(i), b = random_map(i + 1000);
    EXPECT_NEAR(compare(a, b), compare(b, a), 1e-12);
  }
}

TEST_P(MetricConformance, ChanceIsTheMeanOverRandomOrders) {
  const std::vector<double> original = random_map(0);
  const auto chance = metric_->chance({original, schema_});
  if (!chance) GTEST_SKIP() << "no such level";
  RandomStream stream(8, "orders");
  double sum = 0, squares = 0;
  constexpr int kTrials = 5000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> shuffled;
    for (const std::int64_t i : stream.permutation(12)) shuffled.push_back(original[static_cast<std::size_t>(i)]);
    const double value = compare(original, shuffled);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kTrials;
  const double error = std::sqrt((squares / kTrials - mean * mean) / kTrials);
  // A sampled level has an error of its own, over 512 orders of so small a map.
  const double both = metric_->chance_is_exact() ? error : error * std::sqrt(1 + kTrials / 512.0);
  EXPECT_NEAR(mean, *chance, 4 * both + 1e-12);
}

TEST_P(MetricConformance, TopSetHasTopCountDifferentPositions) {
  const std::vector<double> map = random_map(3);
  std::vector<std::int64_t> set = metric_->top_set({map, schema_});
  if (!metric_->top_count()) {
    EXPECT_TRUE(set.empty());
    return;
  }
  std::sort(set.begin(), set.end());
  EXPECT_EQ(static_cast<std::int64_t>(set.size()), *metric_->top_count());
  EXPECT_EQ(std::adjacent_find(set.begin(), set.end()), set.end());
}

TEST_P(MetricConformance, NameIsACallThatMakesTheSameMetric) {
  EXPECT_EQ(metrics().make(metric_->name())->name(), metric_->name());
  EXPECT_EQ(method_of(metric_->name()), method_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Metrics, MetricConformance, testing::ValuesIn(metric_calls()),
                         [](const auto& call) { return method_of(call.param) + "_" + std::to_string(call.index); });

}  // namespace
}  // namespace holdfast::metric
