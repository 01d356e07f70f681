#include "holdfast/metric/neighborhood.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

#include "maps.h"

namespace holdfast::metric {
namespace {

// Whether two features are one step apart, by the words of neighborhood.h and one feature at a time.
bool touch(const Schema& schema, std::int64_t a, std::int64_t b) {
  const Layout& layout = schema.layout;
  const auto contains = [](const std::vector<std::int64_t>& list, std::int64_t x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  if (!schema.neighbors.empty()) return contains(schema.neighbors[static_cast<std::size_t>(a)], b);
  if (!schema.groups.empty()) {
    return std::any_of(schema.groups.begin(), schema.groups.end(),
                       [&](const Group& group) { return contains(group.columns, a) && contains(group.columns, b); });
  }
  const std::int64_t side = layout.side_features();
  if (a / side != b / side) return false;
  a %= side, b %= side;
  switch (layout.kind) {
    case Layout::Kind::kVector:
      return std::abs(a - b) <= 1;
    case Layout::Kind::kGrid:
      return std::abs(a / layout.width - b / layout.width) <= 1 && std::abs(a % layout.width - b % layout.width) <= 1;
    case Layout::Kind::kGraph: {
      const auto [i, j] = edge_nodes(layout.length, a);
      const auto [k, l] = edge_nodes(layout.length, b);
      return i == k || i == l || j == k || j == l;
    }
    case Layout::Kind::kSequence:
    case Layout::Kind::kTokens: {
      // Of numbers in steps: the same number of the next step.
      const std::int64_t apart = layout.by_step || layout.kind == Layout::Kind::kTokens ? 1 : layout.stride;
      return a == b || std::abs(a - b) == apart;
    }
  }
  return false;
}

// near[i][j]: j within w steps of i.
std::vector<std::vector<bool>> reach(const Schema& schema, std::int64_t w) {
  const auto n = static_cast<std::size_t>(schema.layout.features());
  std::vector<std::vector<bool>> near(n, std::vector<bool>(n));
  for (std::size_t i = 0; i < n; ++i) {
    near[i][i] = true;
    for (std::int64_t step = 0; step < w; ++step) {
      const std::vector<bool> before = near[i];
      for (std::size_t j = 0; j < n; ++j) {
        if (!before[j]) continue;
        for (std::size_t k = 0; k < n; ++k) {
          if (touch(schema, static_cast<std::int64_t>(j), static_cast<std::int64_t>(k))) near[i][k] = true;
        }
      }
      if (near[i] == before) break;
    }
  }
  return near;
}

std::vector<std::int64_t> positions(const std::vector<bool>& row) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i]) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

class NeighborhoodTest : public testing::TestWithParam<NamedSchema> {
 protected:
  const Schema& schema() const { return GetParam().schema; }
  std::int64_t features() const { return schema().layout.features(); }
};

TEST_P(NeighborhoodTest, WindowsAreWhatSoManyStepsReach) {
  for (const std::int64_t w : {0, 1, 2, 3, 9}) {
    const Neighborhood near(schema(), w);
    const auto expected = reach(schema(), w);
    for (std::int64_t i = 0; i < features(); ++i) {
      ASSERT_EQ(near.window(i), positions(expected[static_cast<std::size_t>(i)])) << "w " << w << ", feature " << i;
      EXPECT_EQ(near.window_size(i), static_cast<std::int64_t>(near.window(i).size()));
    }
  }
}

TEST_P(NeighborhoodTest, GrowingASetIsTheUnionOfItsWindows) {
  RandomStream stream(1, "test");
  for (const std::int64_t w : {0, 1, 2, 5}) {
    const Neighborhood near(schema(), w);
    const auto expected = reach(schema(), w);
    for (int trial = 0; trial < 10; ++trial) {
      FeatureSet set;
      near.reset(set);
      std::vector<bool> grown(static_cast<std::size_t>(features()));
      for (int member = 0; member < trial; ++member) {
        const auto feature = static_cast<std::size_t>(stream.below(static_cast<std::uint64_t>(features())));
        set.add(static_cast<std::int64_t>(feature));
        for (std::size_t i = 0; i < grown.size(); ++i) grown[i] = grown[i] || expected[feature][i];
      }
      near.grow(set);
      ASSERT_EQ(set.members(), positions(grown)) << "w " << w;
      ASSERT_EQ(set.count(), static_cast<std::int64_t>(positions(grown).size()));
    }
  }
}

TEST_P(NeighborhoodTest, SmoothingIsTheWindowSumOverOneDivisor) {
  RandomStream stream(2, "test");
  for (const std::int64_t w : {0, 1, 2}) {
    const Neighborhood near(schema(), w);
    const std::vector<double> map = random_map(stream, features());
    std::vector<double> smoothed(map.size());
    near.smooth(map, smoothed);
    for (std::int64_t i = 0; i < features(); ++i) {
      double sum = 0;
      for (const std::int64_t j : near.window(i)) sum += map[static_cast<std::size_t>(j)];
      EXPECT_NEAR(smoothed[static_cast<std::size_t>(i)] * near.divisor(), sum, 1e-13 * (1 + sum));
    }
  }
}

// Proposition 3 of the paper, and what it becomes on the other layouts.
TEST_P(NeighborhoodTest, SmoothingContractsTheDistanceOfMaps) {
  RandomStream stream(3, "test");
  for (const std::int64_t w : {1, 2, 3}) {
    const Neighborhood near(schema(), w);
    for (int trial = 0; trial < 20; ++trial) {
      const std::vector<double> a = random_map(stream, features()), b = random_map(stream, features());
      std::vector<double> smooth_a(a.size()), smooth_b(b.size());
      near.smooth(a, smooth_a);
      near.smooth(b, smooth_b);
      double before = 0, after = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        before += (a[i] - b[i]) * (a[i] - b[i]);
        after += (smooth_a[i] - smooth_b[i]) * (smooth_a[i] - smooth_b[i]);
      }
      EXPECT_LE(after, before * (1 + 1e-12));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, NeighborhoodTest, testing::ValuesIn(all_schemas()),
                         [](const auto& schema) { return schema.param.name; });

// The limit of Proposition 3: with each window's own size as divisor the operator's norm at 28 x 28 and w = 1 is 1.005.
TEST(Smoothing, WouldNotContractWithTheSizeOfEachWindowAsDivisor) {
  const Schema schema = Schema::of(Layout::grid(1, 28, 28));
  const Neighborhood near(schema, 1);
  std::vector<double> x(784, 1), y(784);
  double norm = 0;
  for (int iteration = 0; iteration < 300; ++iteration) {  // power iteration with D^-1 B and its transpose
    near.smooth(x, y);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= 9 / static_cast<double>(near.window_size(static_cast<std::int64_t>(i)));
    double squares = 0, before = 0;
    for (std::size_t i = 0; i < y.size(); ++i) squares += y[i] * y[i], before += x[i] * x[i];
    norm = std::sqrt(squares / before);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] /= static_cast<double>(near.window_size(static_cast<std::int64_t>(i)));
    near.smooth(y, x);
    for (double& value : x) value *= 9;
    double length = 0;
    for (const double value : x) length += value * value;
    for (double& value : x) value /= std::sqrt(length);
  }
  EXPECT_NEAR(norm, 1.005, 5e-4);
}

// Where a map is zero its smoothed form is exactly zero, and equal windows have exactly equal sums: ranks depend on it.
TEST(Smoothing, LeavesNoRoundingDust) {
  const Schema schema = Schema::of(Layout::grid(1, 28, 28));
  RandomStream stream(4, "test");
  std::vector<double> map(784, 0), smoothed(784);
  for (const std::size_t i : {100U, 101U, 128U, 129U, 600U}) map[i] = stream.uniform() / 3;
  const Neighborhood near(schema, 2);
  near.smooth(map, smoothed);
  for (std::int64_t i = 0; i < 784; ++i) {
    double sum = 0;
    for (const std::int64_t j : near.window(i)) sum += map[static_cast<std::size_t>(j)];
    if (sum == 0) {
      EXPECT_EQ(smoothed[static_cast<std::size_t>(i)], 0);
    }
  }
  // Windows around rows 3, column 15 and 16 hold the same four pixels (3,16), (3,17), (4,16), (4,17).
  EXPECT_EQ(smoothed[3 * 28 + 16], smoothed[3 * 28 + 17]);
  EXPECT_EQ(smoothed[3 * 28 + 16], smoothed[4 * 28 + 16]);
}

TEST(Smoothing, OfGraphsAddsInOneOrder) {
  const Schema schema = Schema::of(Layout::graph(12));
  RandomStream stream(7, "test");
  std::vector<double> map = random_map(stream, 66, 0), smoothed(66);
  for (std::size_t edge = 0; edge < map.size(); ++edge) map[edge] = edge % 3 == 0 ? map[edge] / 3 : 0;
  const Neighborhood near(schema, 1);
  near.smooth(map, smoothed);
  for (std::int64_t edge = 0; edge < 66; ++edge) {
    double sum = 0;
    for (const std::int64_t other : near.window(edge)) sum += map[static_cast<std::size_t>(other)];
    EXPECT_EQ(smoothed[static_cast<std::size_t>(edge)], sum / near.divisor()) << "to the last bit";
  }
}

TEST(Smoothing, DividesByTheLargestWindow) {
  EXPECT_EQ(Neighborhood(Schema::of(Layout::grid(1, 28, 28)), 2).divisor(), 25);
  EXPECT_EQ(Neighborhood(Schema::of(Layout::vector(9)), 2).divisor(), 5);
  EXPECT_EQ(Neighborhood(Schema::of(Layout::graph(6)), 1).divisor(), 9) << "an edge and the 4 + 4 that share a node with it";
  EXPECT_EQ(Neighborhood(Schema::of(Layout::graph(6)), 2).divisor(), 15);
  EXPECT_EQ(Neighborhood(table_schema(), 1).divisor(), 3);
  EXPECT_EQ(Neighborhood(list_schema(), 1).divisor(), 4);
}

TEST(Neighborhood, ColumnsOfATableHaveNoOrder) {
  Schema schema = Schema::of(Layout::vector(3));
  EXPECT_EQ(Neighborhood(schema, 1).window(1), (std::vector<std::int64_t>{0, 1, 2}));
  schema.features = {{.name = "age"}, {.name = "height"}, {.name = "weight"}};
  EXPECT_EQ(Neighborhood(schema, 1).window(1), (std::vector<std::int64_t>{1}));
}

TEST(Neighborhood, TakesAnyRadius) {
  const Schema schema = Schema::of(Layout::grid(1, 3, 3));
  EXPECT_EQ(Neighborhood(schema, std::numeric_limits<std::int64_t>::max()).window(8).size(), 9U);
}

TEST(Neighborhood, OfTwoImagesStaysOnItsSide) {
  const Schema schema = Schema::of(Layout::grid(1, 2, 2, 2));
  EXPECT_EQ(Neighborhood(schema, 5).window(3), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(Neighborhood(schema, 5).window(4), (std::vector<std::int64_t>{4, 5, 6, 7}));
}

TEST(CorrelationNeighbors, AreColumnsThatMoveTogetherInEitherDirection) {
  // 1 = 2 x 0, 2 = -0, 3 is independent of them, 4 never changes.
  std::vector<double> rows;
  RandomStream stream(5, "test");
  for (int i = 0; i < 200; ++i) {
    const double x = stream.normal();
    for (const double value : {x, 2 * x + 1, -x, stream.normal(), 0.1}) rows.push_back(value);
  }
  const std::vector<std::vector<std::int64_t>> expected{{1, 2}, {0, 2}, {0, 1}, {}, {}};
  EXPECT_EQ(correlation_neighbors(rows, 5, 0.5), expected);
  EXPECT_EQ(correlation_neighbors(rows, 5, 1), expected) << "rounding must not part copies";
}

TEST(CorrelationNeighbors, FollowTheDefinition) {
  RandomStream stream(6, "test");
  constexpr std::size_t kRows = 50, kColumns = 6;
  std::vector<double> rows(kRows * kColumns);
  for (double& value : rows) value = stream.normal();
  for (std::size_t i = 0; i < kRows; ++i) rows[i * kColumns + 1] += rows[i * kColumns];
  const auto neighbors = correlation_neighbors(rows, kColumns, 0.2);
  for (std::size_t a = 0; a < kColumns; ++a) {
    for (std::size_t b = 0; b < kColumns; ++b) {
      double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
      for (std::size_t i = 0; i < kRows; ++i) ma += rows[i * kColumns + a] / kRows, mb += rows[i * kColumns + b] / kRows;
      for (std::size_t i = 0; i < kRows; ++i) {
        const double x = rows[i * kColumns + a] - ma, y = rows[i * kColumns + b] - mb;
        ab += x * y, aa += x * x, bb += y * y;
      }
      const bool listed = std::count(neighbors[a].begin(), neighbors[a].end(), static_cast<std::int64_t>(b)) > 0;
      EXPECT_EQ(listed, a != b && std::abs(ab / std::sqrt(aa * bb)) >= 0.2);
    }
  }
}

}  // namespace
}  // namespace holdfast::metric
