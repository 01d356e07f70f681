// The LENS metrics against their definitions, and the paper's propositions with their limits.
#include "holdfast/metric/lens_distance.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "holdfast/metric/neighborhood.h"
#include "holdfast/metric/top_k.h"
#include "maps.h"
#include "support/errors.h"

namespace holdfast::metric {
namespace {

using Positions = std::vector<std::int64_t>;

// Members of `set` within w of one of `others`, by windows.
std::int64_t near_count(const Schema& schema, std::int64_t w, const Positions& set, const Positions& others) {
  const Neighborhood near(schema, w);
  return std::count_if(set.begin(), set.end(), [&](std::int64_t member) {
    const Positions window = near.window(member);
    return std::any_of(others.begin(), others.end(),
                       [&](std::int64_t other) { return std::binary_search(window.begin(), window.end(), other); });
  });
}

// The metric's mean over every map whose top k, k being the metric's, is marked with 1 in a map of zeros.
double mean_over_subsets(const Metric& metric, const Schema& schema, const std::vector<double>& original) {
  double sum = 0, subsets = 0;
  for (std::uint32_t subset = 0; subset < 1U << original.size(); ++subset) {
    if (std::popcount(subset) != *metric.top_count()) continue;
    std::vector<double> map(original.size());
    for (std::size_t i = 0; i < map.size(); ++i) map[i] = subset >> i & 1;
    sum += metric.compare({original, schema}, {map, schema});
    ++subsets;
  }
  return sum / subsets;
}

class LensTest : public testing::TestWithParam<NamedSchema> {
 protected:
  const Schema& schema() const { return GetParam().schema; }
  std::int64_t features() const { return schema().layout.features(); }
  std::int64_t random_k(RandomStream& stream) const {
    return 1 + static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(features())));
  }
};

TEST_P(LensTest, PrecisionAndRecallAreTheSharesThatLieNear) {
  RandomStream stream(1, "test");
  for (int trial = 0; trial < 40; ++trial) {
    const std::int64_t k = random_k(stream), w = static_cast<std::int64_t>(stream.below(4));
    const std::vector<double> a = random_map(stream, features(), trial % 2 == 0 ? 0 : 3),
                              b = random_map(stream, features(), trial % 2 == 0 ? 0 : 3);
    const Positions s = top_k_set(a, k), t = top_k_set(b, k);
    const std::string options = fmt::format("(k={},w={})", k, w);
    const double precision = static_cast<double>(near_count(schema(), w, s, t)) / static_cast<double>(k);
    const double recall = static_cast<double>(near_count(schema(), w, t, s)) / static_cast<double>(k);
    EXPECT_DOUBLE_EQ(compare("lens_precision" + options, schema(), a, b), precision);
    EXPECT_DOUBLE_EQ(compare("lens_recall" + options, schema(), a, b), recall);
    EXPECT_EQ(compare("lens_precision" + options, schema(), a, b), compare("lens_recall" + options, schema(), b, a));
    EXPECT_NEAR(compare("lens_distance" + options, schema(), a, b), 2 - precision - recall, 1e-12);
  }
}

TEST_P(LensTest, WithoutAWindowItIsTheTopK) {
  RandomStream stream(2, "test");
  for (int trial = 0; trial < 20; ++trial) {
    const std::int64_t k = random_k(stream);
    const std::vector<double> a = random_map(stream, features(), 4), b = random_map(stream, features(), 4);
    const double top = compare(fmt::format("top_k(k={})", k), schema(), a, b);
    EXPECT_EQ(compare(fmt::format("lens_precision(k={},w=0)", k), schema(), a, b), top);
    EXPECT_EQ(compare(fmt::format("lens_recall(k={},w=0)", k), schema(), a, b), top);
    EXPECT_NEAR(compare(fmt::format("top_k_div(k={},diversity=0)", k), schema(), a, b), top, 1e-12);
  }
}

TEST_P(LensTest, RankCorrelationsAreThoseOfTheSmoothedMaps) {
  RandomStream stream(3, "test");
  for (const std::int64_t w : {0, 1}) {
    const std::vector<double> a = random_map(stream, features()), b = random_map(stream, features());
    std::vector<double> smooth_a(a.size()), smooth_b(b.size());
    Neighborhood(schema(), w).smooth(a, smooth_a);
    Neighborhood(schema(), w).smooth(b, smooth_b);
    for (const std::string name : {"kendall", "spearman"}) {
      const double value = compare(fmt::format("lens_{}(w={})", name, w), schema(), a, b);
      const double expected = compare(name, schema(), smooth_a, smooth_b);
      EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected))) << value << " and " << expected;
    }
  }
}

// Proposition 1: d_k^(w2) <= d_k^(w1) <= |S sym-diff T| / k for w1 <= w2.
TEST_P(LensTest, WiderWindowsBringMapsCloser) {
  RandomStream stream(4, "test");
  for (int trial = 0; trial < 30; ++trial) {
    const std::int64_t k = random_k(stream);
    const std::vector<double> a = random_map(stream, features(), 5), b = random_map(stream, features(), 5);
    double before = compare(fmt::format("lens_distance(k={},w=0,form=u)", k), schema(), a, b);
    for (const std::int64_t w : {0, 1, 2, 3, 8}) {
      const double distance = compare(fmt::format("lens_distance(k={},w={})", k, w), schema(), a, b);
      EXPECT_LE(distance, before + 1e-12);
      before = distance;
    }
  }
}

// Proposition 2: d <= u, and u is symmetric and keeps the triangle inequality.
TEST_P(LensTest, TheDistanceIsBoundedByAPseudometric) {
  RandomStream stream(5, "test");
  for (int trial = 0; trial < 30; ++trial) {
    LensWeights weights;
    for (int i = 0; i < 3; ++i) weights.k.push_back({random_k(stream), stream.uniform()});
    for (const std::int64_t w : {0, 1, 3}) weights.w.push_back({w, stream.uniform()});
    const std::vector<double> x = random_map(stream, features(), 3), y = random_map(stream, features()),
                              z = random_map(stream, features(), 3);
    const MapView a{x, schema()}, b{y, schema()}, c{z, schema()};
    EXPECT_LE(lens_distance(a, b, weights), top_distance(a, b, weights) + 1e-12);
    EXPECT_NEAR(top_distance(a, b, weights), top_distance(b, a, weights), 1e-12);
    EXPECT_LE(top_distance(a, c, weights), top_distance(a, b, weights) + top_distance(b, c, weights) + 1e-12);
    EXPECT_NEAR(lens_distance(a, b, weights), lens_distance(b, a, weights), 1e-12);
    EXPECT_EQ(lens_distance(a, a, weights), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, LensTest, testing::ValuesIn(all_schemas()),
                         [](const auto& schema) { return schema.param.name; });

// All subsets of k features are equally likely as the top k of a random map: the mean over all of them is the chance level.
TEST(LensChance, IsTheMeanOverAllSubsets) {
  RandomStream stream(6, "test");
  for (const Schema& schema :
       {Schema::of(Layout::grid(1, 3, 4)), Schema::of(Layout::grid(1, 2, 3, 2)), Schema::of(Layout::vector(10)),
        Schema::of(Layout::graph(5)), Schema::of(Layout::graph(4, 2)), table_schema(), list_schema()}) {
    const std::vector<double> original = random_map(stream, schema.layout.features());
    for (const char* name : {"lens_precision(k=1,w=1)", "lens_precision(k=3,w=0)", "lens_precision(k=3,w=1)",
                             "lens_recall(k=3,w=1)", "lens_recall(k=2,w=2)", "lens_distance(k=3,w=1)"}) {
      const auto metric = metrics().make(name);
      EXPECT_NEAR(metric->chance({original, schema}).value(), mean_over_subsets(*metric, schema, original), 1e-12)
          << name << " on a " << schema.layout.describe();
    }
  }
}

TEST(LensPrecision, StopsAtTheBorderInsteadOfWrappingRound) {
  const Schema schema = Schema::of(Layout::grid(1, 2, 3));
  // The last pixel of the first row and the first of the second follow each other in memory, but are not neighbours.
  EXPECT_EQ(compare("lens_precision(k=1,w=1)", schema, {0, 0, 9, 0, 0, 0}, {0, 0, 0, 9, 0, 0}), 0);
  EXPECT_EQ(compare("lens_precision(k=1,w=1)", schema, {9, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 9, 0}), 1) << "diagonal";
}

TEST(LensPrecision, AndRecallDiffer) {
  // S = {0, 6}, T = {1, 2}: one of S is near T, and one of T near S.  With S = {0, 1}: both near 1, but 2 is near 1 as well.
  const Schema schema = Schema::of(Layout::vector(8));
  const std::vector<double> a{9, 0, 0, 0, 0, 0, 8, 0}, b{0, 9, 8, 0, 0, 0, 0, 0};
  EXPECT_EQ(compare("lens_precision(k=2,w=1)", schema, a, b), 0.5);
  EXPECT_EQ(compare("lens_precision(k=2,w=2)", schema, a, b), 0.5);
  EXPECT_EQ(compare("lens_recall(k=2,w=2)", schema, a, b), 1);
}

// The paper's setting on MNIST, whose digits keep away from the border: 0.71 for nothing.
TEST(LensPrecision, OfARandomMapIsHighWhereWindowsAreWide) {
  const Schema schema = Schema::of(Layout::grid(1, 28, 28));
  RandomStream stream(7, "test");
  double one = 0, two = 0;
  for (int i = 0; i < 50; ++i) {
    std::vector<double> map = random_map(stream, 784);
    for (std::size_t pixel = 0; pixel < map.size(); ++pixel) map[pixel] += pixel / 28 % 24 > 3 && pixel % 28 % 24 > 3;
    one += metrics().make("lens_precision(k=100,w=1)")->chance({map, schema}).value() / 50;
    two += metrics().make("lens_precision(k=100,w=2)")->chance({map, schema}).value() / 50;
  }
  EXPECT_NEAR(one, 0.71, 0.005);
  EXPECT_NEAR(two, 0.97, 0.005);
}

TEST(LensDistance, BreaksTheTriangleInequality) {
  const Schema schema = Schema::of(Layout::vector(3));
  const std::vector<double> x{3, 1, 3}, y{0, 2, 2}, z{0, 0, 4};
  const MapView a{x, schema}, b{y, schema}, c{z, schema};
  const LensWeights weights{.k = {{1, 1}}, .w = {{1, 1}}};
  EXPECT_GT(lens_distance(a, c, weights), lens_distance(a, b, weights) + lens_distance(b, c, weights));
}

TEST(TopDistance, DoesNotSeparateMapsThatRankAlike) {
  const Schema schema = Schema::of(Layout::vector(3));
  const std::vector<double> x{3, 1, 2}, twice{6, 2, 4};
  EXPECT_EQ(top_distance({x, schema}, {twice, schema}, {.k = {{1, 1}, {2, 1}}, .w = {{0, 1}}}), 0);
}

TEST(LensDistance, TakesWeightedListsAsOptions) {
  const Schema schema = Schema::of(Layout::vector(12));
  RandomStream stream(8, "test");
  const std::vector<double> a = random_map(stream, 12), b = random_map(stream, 12);
  const LensWeights weights{.k = {{2, 0.25}, {5, 0.75}}, .w = {{0, 0.5}, {1, 0.3}, {2, 0.2}}};
  const std::string call = "lens_distance(k=2x5,w=0x1x2,alpha=0.25x0.75,beta=0.5x0.3x0.2";
  EXPECT_DOUBLE_EQ(compare(call + ")", schema, a, b), lens_distance({a, schema}, {b, schema}, weights));
  EXPECT_DOUBLE_EQ(compare(call + ",form=u)", schema, a, b), top_distance({a, schema}, {b, schema}, weights));
  EXPECT_EQ(metrics().make(call + ",form=u)")->name(), call + ",form=u)");
  EXPECT_DOUBLE_EQ(compare("lens_distance(k=2x4,w=1)", schema, a, b),
                   (compare("lens_distance(k=2,w=1)", schema, a, b) + compare("lens_distance(k=4,w=1)", schema, a, b)) / 2);
  EXPECT_EQ(metrics().make("lens_distance")->name(), "lens_distance(k=100,w=1)");
}

TEST(LensDistance, SaysWhatIsWrongWithItsOptions) {
  EXPECT_ERROR(metrics().make("lens_distance(k=0)"), kUsage, "lens_distance(k=0): k must be >= 1");
  EXPECT_ERROR(metrics().make("lens_distance(w=-1)"), kUsage, "w must be >= 0");
  EXPECT_ERROR(metrics().make("lens_distance(k=3xx4)"), kUsage, "expected numbers with x between");
  EXPECT_ERROR(metrics().make("lens_distance(k=3x)"), kUsage, "expected numbers with x between");
  EXPECT_ERROR(metrics().make("lens_distance(k=2x3,alpha=1)"), kUsage, "alpha has 1 weights for 2 values of k");
  EXPECT_ERROR(metrics().make("lens_distance(beta=-1)"), kUsage, "weights must be >= 0");
  EXPECT_ERROR(metrics().make("lens_distance(k=5x40)")->check(Schema::of(Layout::vector(30))), kUsage, "choose k <= 30");
}

TEST(LensMetrics, RefuseWhatDoesNotFit) {
  const Schema schema = Schema::of(Layout::vector(30));
  for (const char* name : {"lens_precision", "lens_recall", "top_k_div", "lens_precision_div", "lens_recall_div"}) {
    EXPECT_ERROR(metrics().make(fmt::format("{}(k=31)", name))->check(schema), kUsage, "the map has 30 features; choose k <= 30");
    EXPECT_ERROR(metrics().make(fmt::format("{}(k=0)", name)), kUsage, "k must be >= 1");
  }
  EXPECT_ERROR(metrics().make("lens_precision(w=-1)"), kUsage, "w must be >= 0");
  EXPECT_ERROR(metrics().make("top_k_div(diversity=-1)"), kUsage, "diversity must be >= 0");
}

}  // namespace
}  // namespace holdfast::metric
