#include "holdfast/data/layout.h"

#include <cmath>
#include <set>

#include "support/errors.h"

namespace holdfast::data {
namespace {

using Shape = std::vector<std::int64_t>;

TEST(Layout, CountsWhatEachKindIsMadeOf) {
  const Layout vector = Layout::vector(30);
  EXPECT_EQ(vector.sample_shape(), Shape({30}));
  EXPECT_EQ(vector.inputs(), 30);
  EXPECT_EQ(vector.features(), 30);

  const Layout image = Layout::grid(3, 4, 5);
  EXPECT_EQ(image.sample_shape(), Shape({3, 4, 5}));
  EXPECT_EQ(image.inputs(), 60);
  EXPECT_EQ(image.features(), 20);

  const Layout graph = Layout::graph(111);
  EXPECT_EQ(graph.sample_shape(), Shape({6105}));
  EXPECT_EQ(graph.features(), 6105);
}

TEST(Layout, APairHasASideDimensionAndTwiceTheFeatures) {
  const Layout images = Layout::grid(3, 4, 5, 2);
  EXPECT_EQ(images.sample_shape(), Shape({2, 3, 4, 5}));
  EXPECT_EQ(images.inputs(), 120);
  EXPECT_EQ(images.features(), 40);
  EXPECT_EQ(images.side_features(), 20);
  EXPECT_EQ(Layout::graph(4, 2).sample_shape(), Shape({2, 6}));
}

TEST(Layout, DescribesItself) {
  EXPECT_EQ(Layout::vector(30).describe(), "vector of 30 features");
  EXPECT_EQ(Layout::grid(3, 32, 32).describe(), "3 x 32 x 32 image");
  EXPECT_EQ(Layout::graph(111, 2).describe(), "pair of graphs with 111 nodes");
  EXPECT_EQ(Layout::grid(1, 28, 28, 2).describe(), "pair of 1 x 28 x 28 images");
}

TEST(Layout, SequencesFoldTheNumbersOfAStepAndNeverTheContext) {
  const Layout steps = Layout::sequence(3, 2).with_context(1),
               numbers = Layout::sequence(3, 2, /*by_step=*/false).with_context(1);
  EXPECT_EQ(steps.sample_shape(), Shape({3, 3}));
  EXPECT_EQ(steps.inputs(), 9);
  EXPECT_EQ(steps.features(), 3);
  EXPECT_EQ(numbers.features(), 6);
  const std::vector<double> map{1, -2, 90, 3, 4, 90, -5, 6, 90};
  EXPECT_EQ(fold(steps, map), (std::vector<double>{3, 7, 11}));
  EXPECT_EQ(fold(numbers, map), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(fold(Layout::tokens(3, 2), map), (std::vector<double>{3, 7, 11}));
  EXPECT_EQ(steps.describe(), "sequence of 3 steps of 2 numbers");
  EXPECT_ERROR(Layout::tokens(3, 2, 0), kInput, "at least 1 number of context");
}

TEST(Layout, ContextIsNoFeatureOfAVectorOrAGrid) {
  const Layout vector = Layout::vector(2).with_context(1), grid = Layout::grid(2, 1, 2).with_context(1);
  EXPECT_EQ(vector.sample_shape(), Shape({3}));
  EXPECT_EQ(fold(vector, std::vector<double>{1, -2, 90}), (std::vector<double>{1, 2}));
  EXPECT_EQ(grid.sample_shape(), Shape({3, 1, 2}));
  EXPECT_EQ(fold(grid, std::vector<double>{1, 2, -3, 4, 90, 90}), (std::vector<double>{4, 6}));
  EXPECT_EQ(grid.element_features(), (std::vector<std::int64_t>{0, 1, 0, 1, -1, -1}));
  EXPECT_EQ(Layout::grid(2, 1, 2, 2).element_features(), (std::vector<std::int64_t>{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_ERROR(Layout::graph(4).with_context(1), kInput, "graphs have no context");
}

TEST(Layout, GuessesFromShapes) {
  EXPECT_EQ(Layout::guess(Shape({7})), Layout::vector(7));
  EXPECT_EQ(Layout::guess(Shape({4, 5})), Layout::grid(1, 4, 5));
  EXPECT_EQ(Layout::guess(Shape({3, 4, 5})), Layout::grid(3, 4, 5));
  EXPECT_ERROR(Layout::guess(Shape({2, 3, 4, 5})), kInput, "4 dimensions need a schema");
  EXPECT_ERROR(Layout::guess(Shape({})), kInput, "0 dimensions need a schema");
}

TEST(Layout, RefusesSizesThatMakeNoSense) {
  EXPECT_ERROR(Layout::vector(0), kInput, "at least 1 feature, not 0");
  EXPECT_ERROR(Layout::grid(3, -1, 5), kInput, "at least 1 row, not -1");
  EXPECT_ERROR(Layout::graph(1), kInput, "at least 2 nodes, not 1");
  EXPECT_ERROR(Layout::vector(5, 3), kInput, "1 or 2 sides, not 3");
  EXPECT_ERROR(Layout::graph(std::int64_t{1} << 60), kInput, "at most 2^40 elements");
  EXPECT_ERROR(Layout::grid(1 << 20, 1 << 20, 1 << 20), kInput, "at most 2^40 elements");
}

TEST(EdgeIndex, EnumeratesTheUpperTriangleRowByRowAndBack) {
  for (const std::int64_t nodes : {2, 3, 5, 111, 190}) {
    std::int64_t expected = 0;
    for (std::int64_t i = 0; i < nodes; ++i) {
      for (std::int64_t j = i + 1; j < nodes; ++j, ++expected) {
        ASSERT_EQ(edge_index(nodes, i, j), expected);
        ASSERT_EQ(edge_nodes(nodes, expected), std::pair(i, j));
      }
    }
    EXPECT_EQ(expected, Layout::graph(nodes).features());
  }
}

TEST(EdgeIndex, IsExactWhereTheSquareRootRounds) {
  const std::int64_t nodes = 1'000'003;
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}, std::int64_t{700'001}, nodes - 3, nodes - 2}) {
    for (const std::int64_t j : {i + 1, nodes - 1}) EXPECT_EQ(edge_nodes(nodes, edge_index(nodes, i, j)), std::pair(i, j));
  }
}

// The definition, with one loop per dimension.
std::vector<double> fold_by_hand(const Layout& layout, const std::vector<float>& map) {
  std::vector<double> folded;
  for (std::int64_t side = 0; side < layout.sides; ++side) {
    for (std::int64_t row = 0; row < layout.height; ++row) {
      for (std::int64_t column = 0; column < layout.width; ++column) {
        double sum = 0;
        for (std::int64_t channel = 0; channel < layout.channels; ++channel) {
          const std::int64_t position = ((side * layout.channels + channel) * layout.height + row) * layout.width + column;
          sum += std::abs(map[static_cast<std::size_t>(position)]);
        }
        folded.push_back(sum);
      }
    }
  }
  return folded;
}

TEST(Fold, SumsMagnitudesOverChannelsOfEachSide) {
  for (const Layout& layout :
       {Layout::grid(3, 4, 5), Layout::grid(3, 4, 5, 2), Layout::grid(1, 2, 3), Layout::grid(2, 1, 7, 2)}) {
    std::vector<float> map;
    for (std::int64_t i = 0; i < layout.inputs(); ++i) map.push_back(static_cast<float>((i * 37 % 101) - 50) / 8.0F);
    EXPECT_EQ(fold(layout, std::span<const float>(map)), fold_by_hand(layout, map)) << layout.describe();
  }
}

TEST(Fold, OppositeSignsInTwoChannelsDoNotCancel) {
  const std::vector<float> map = {1, -2, -1, 2};
  EXPECT_EQ(fold(Layout::grid(2, 1, 2), std::span<const float>(map)), std::vector<double>({2, 4}));
}

TEST(Fold, LeavesAFoldedMapAsItIs) {
  const Layout layout = Layout::grid(3, 2, 2, 2);
  const std::vector<double> folded = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(fold(layout, std::span<const double>(folded)), folded);
}

TEST(Fold, RefusesAMapOfAnotherSize) {
  const std::vector<float> map(7);
  EXPECT_ERROR(fold(Layout::grid(3, 2, 2), std::span<const float>(map)), kInput,
               "7 values does not fit a 3 x 2 x 2 image: it needs 12");
}

}  // namespace
}  // namespace holdfast::data
