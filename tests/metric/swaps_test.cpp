// How many features can have left the top k at once.
#include "holdfast/metric/swaps.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast::metric {
namespace {

constexpr std::int64_t kTopRows = 5, kOtherColumns = 7;

// The largest d for which d rows have d open columns in common, over all sets of rows.
std::int64_t largest_block(const std::vector<std::int8_t>& open) {
  std::int64_t largest = 0;
  for (unsigned rows = 1; rows < 1U << kTopRows; ++rows) {
    std::int64_t common = 0;
    for (std::int64_t j = 0; j < kOtherColumns; ++j) {
      bool all = true;
      for (std::int64_t i = 0; i < kTopRows; ++i)
        all = all && (!(rows >> i & 1U) || open[static_cast<std::size_t>(i * kOtherColumns + j)]);
      common += all;
    }
    largest = std::max(largest, std::min<std::int64_t>(std::popcount(rows), common));
  }
  return largest;
}

TEST(MostSwaps, IsNeverBelowTheLargestBlockAndMostlyIsIt) {
  RandomStream stream(5, "pairs");
  std::int64_t same = 0, between = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::int8_t> open(kTopRows * kOtherColumns);
    const double share = stream.uniform();
    for (std::int8_t& pair : open) pair = stream.uniform() < share ? 1 : 0;
    const std::int64_t bound = most_swaps(open, kTopRows, kOtherColumns), exact = largest_block(open);
    EXPECT_GE(bound, exact);
    same += bound == exact;
    between += 0 < exact && exact < kTopRows;
  }
  EXPECT_GT(same, 250);
  EXPECT_GT(between, 250) << "most cases should be neither empty nor full";
}

// Three open pairs of three different top features with one other feature: only one can have entered. Two more with another
// one: two. A row of open pairs: its feature alone can leave.
TEST(MostSwaps, CountsWhatCanLeaveAtOnce) {
  EXPECT_EQ(most_swaps(std::vector<std::int8_t>(6, 0), 3, 2), 0);
  EXPECT_EQ(most_swaps(std::vector<std::int8_t>{1, 0, 1, 0, 1, 0}, 3, 2), 1);
  EXPECT_EQ(most_swaps(std::vector<std::int8_t>{1, 1, 1, 1, 1, 0}, 3, 2), 2);
  EXPECT_EQ(most_swaps(std::vector<std::int8_t>{1, 1, 0, 0, 0, 0}, 3, 2), 1);
  EXPECT_EQ(most_swaps(std::vector<std::int8_t>(6, 1), 3, 2), 2) << "there are only two others";
}

// Three rows have two open pairs and three columns too, but those that remain after one is struck out fall one after the other.
TEST(MostSwaps, StrikesOutAgain) {
  EXPECT_EQ(most_swaps(std::vector<std::int8_t>{1, 1, 0, 0,  //
                                                0, 1, 1, 0,  //
                                                0, 0, 1, 1,  //
                                                0, 0, 0, 1},
                       4, 4),
            1);
}

// The largest d for which two disjoint sets of d features have all pairs between them open; pairs on one side of the edge are.
std::int64_t largest_disjoint_block(const std::vector<std::int8_t>& open, std::int64_t top, std::int64_t others) {
  const std::int64_t all = top + others;
  const auto is_open = [&](std::int64_t i, std::int64_t j) {
    const std::int64_t a = std::min(i, j), b = std::max(i, j);
    return a >= top || b < top || open[static_cast<std::size_t>(a * others + b - top)];
  };
  std::int64_t largest = 0;
  for (unsigned set = 1; set < 1U << all; ++set) {
    std::int64_t partners = 0;
    for (std::int64_t j = 0; j < all; ++j) {
      bool each = !(set >> j & 1U);
      for (std::int64_t i = 0; i < all; ++i) each = each && (!(set >> i & 1U) || is_open(i, j));
      partners += each;
    }
    largest = std::max(largest, std::min<std::int64_t>(std::popcount(set), partners));
  }
  return std::min(largest, std::min(top, others));
}

TEST(MostSwapsOfAny, IsNeverBelowTheLargestDisjointBlock) {
  RandomStream stream(6, "pairs");
  std::int64_t below_all = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::int8_t> open(3 * 5);
    const double share = stream.uniform();
    for (std::int8_t& pair : open) pair = stream.uniform() < share ? 1 : 0;
    const std::int64_t bound = most_swaps_of_any(open, 3, 5);
    EXPECT_GE(bound, largest_disjoint_block(open, 3, 5));
    EXPECT_GE(bound, most_swaps(open, 3, 5));
    below_all += bound < 3;
  }
  EXPECT_GT(below_all, 20) << "a bound that says nothing is easily kept";
  EXPECT_EQ(most_swaps_of_any(std::vector<std::int8_t>{0, 0, 0, 1, 0, 0}, 2, 3), 1) << "a tie of one pair at the edge";
}

}  // namespace
}  // namespace holdfast::metric
