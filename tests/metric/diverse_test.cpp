#include "holdfast/metric/diverse.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "holdfast/metric/top_k.h"
#include "maps.h"

namespace holdfast::metric {
namespace {

using Positions = std::vector<std::int64_t>;

Positions diverse(const Schema& schema, const std::vector<double>& map, std::int64_t k, std::int64_t diversity) {
  FeatureSet chosen;
  const std::int64_t found = diverse_top_k(map, k, Neighborhood(schema, diversity), chosen);
  EXPECT_EQ(found, chosen.count());
  return chosen.members();
}

// By the definition: the highest feature that is near none that was taken, as often as there is one.
Positions greedy(const Schema& schema, const std::vector<double>& map, std::int64_t k, std::int64_t diversity) {
  const Neighborhood apart(schema, diversity);
  const std::vector<std::int64_t> order = top_k_ranked(map, static_cast<std::int64_t>(map.size()));
  Positions taken;
  for (const std::int64_t feature : order) {
    const Positions window = apart.window(feature);
    const bool barred = std::any_of(taken.begin(), taken.end(),
                                    [&](std::int64_t other) { return std::binary_search(window.begin(), window.end(), other); });
    if (!barred && static_cast<std::int64_t>(taken.size()) < k) taken.push_back(feature);
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

class DiverseTest : public testing::TestWithParam<NamedSchema> {};

TEST_P(DiverseTest, IsGreedy) {
  const Schema& schema = GetParam().schema;
  RandomStream stream(1, "test");
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<double> map = random_map(stream, schema.layout.features(), trial % 2 == 0 ? 0 : 4);
    for (const std::int64_t k : {1, 4, 50}) {
      for (const std::int64_t diversity : {0, 1, 2}) {
        EXPECT_EQ(diverse(schema, map, k, diversity), greedy(schema, map, k, diversity));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, DiverseTest, testing::ValuesIn(all_schemas()),
                         [](const auto& schema) { return schema.param.name; });

TEST(Diverse, GreedyIsNotOptimal) {
  EXPECT_EQ(diverse(Schema::of(Layout::vector(3)), {5, 6, 5}, 2, 1), (Positions{1})) << "5 + 5 apart would be more";
}

TEST(Diverse, FindsAsManyAsThereIsRoomFor) {
  const Schema mnist = Schema::of(Layout::grid(1, 28, 28));
  RandomStream stream(2, "test");
  double found = 0;
  for (int i = 0; i < 20; ++i) {
    const std::vector<double> map = random_map(stream, 784);
    EXPECT_EQ(diverse(mnist, map, 100, 1).size(), 100U);
    found += static_cast<double>(diverse(mnist, map, 100, 2).size()) / 20;
  }
  EXPECT_NEAR(found, 66, 6);
}

TEST(DiverseMetrics, DivideByWhatWasFound) {
  const Schema schema = Schema::of(Layout::vector(6));
  // S = {1, 4}: nothing else is free. T = {0, 2, 4}.
  const std::vector<double> a{1, 9, 1, 1, 8, 1}, b{9, 1, 8, 1, 7, 1};
  ASSERT_EQ(diverse(schema, a, 3, 1), (Positions{1, 4}));
  ASSERT_EQ(diverse(schema, b, 3, 1), (Positions{0, 2, 4}));
  EXPECT_EQ(metrics().make("top_k_div(k=3)")->found({a, schema}), 2);
  EXPECT_EQ(compare("top_k_div(k=3,diversity=1)", schema, a, b), 1.0 / 2);
  EXPECT_EQ(compare("top_k_div(k=3,diversity=1)", schema, b, a), 1.0 / 3);
  EXPECT_EQ(compare("lens_precision_div(k=3,w=0,diversity=1)", schema, a, b), 1.0 / 2);
  EXPECT_EQ(compare("lens_recall_div(k=3,w=0,diversity=1)", schema, a, b), 1.0 / 3);
  EXPECT_EQ(compare("lens_precision_div(k=3,w=1,diversity=1)", schema, a, b), 1);
  EXPECT_EQ(compare("lens_recall_div(k=3,w=1,diversity=1)", schema, a, b), 1);
  EXPECT_FALSE(metrics().make("top_k(k=3)")->found({a, schema}).has_value()) << "always k: nothing to report";
}

TEST(DiverseMetrics, WindowsOfLocalityAndDiversityAreSeparate) {
  const Schema schema = Schema::of(Layout::vector(9));
  const std::vector<double> a{9, 8, 0, 0, 7, 0, 0, 0, 0}, b{0, 0, 9, 0, 0, 0, 8, 0, 0};
  // Without diversity S = {0, 1}, with it {0, 4}; T = {2, 6} both ways.
  EXPECT_EQ(compare("lens_precision_div(k=2,w=1,diversity=0)", schema, a, b), 0.5) << "1 is near 2";
  EXPECT_EQ(compare("lens_precision_div(k=2,w=1,diversity=1)", schema, a, b), 0);
  EXPECT_EQ(compare("lens_precision_div(k=2,w=2,diversity=1)", schema, a, b), 1);
}

TEST(DiverseTies, DecideWhereAnEqualValueWasLeftOut) {
  const Schema schema = Schema::of(Layout::vector(5));
  const auto decide = [&](const std::vector<double>& map, std::int64_t k) {
    return diverse_ties_decide(map, k, Neighborhood(schema, 1));
  };
  EXPECT_TRUE(decide({5, 5, 0, 0, 0}, 1)) << "0 or 1";
  EXPECT_TRUE(decide({5, 5, 5, 0, 0}, 2)) << "0 and 2, or 1 alone";
  EXPECT_FALSE(decide({5, 0, 5, 0, 4}, 3)) << "equal, and both taken";
  EXPECT_FALSE(decide({6, 5, 5, 0, 0}, 2)) << "one of the equal ones is barred by a higher one";
  EXPECT_TRUE(decide({6, 0, 0, 0, 0}, 2)) << "2, 3 and 4 are free and one is taken";
  EXPECT_FALSE(decide({5, 4, 3, 2, 1}, 5));
}

}  // namespace
}  // namespace holdfast::metric
