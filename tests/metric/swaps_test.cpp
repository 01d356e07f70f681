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

}  // namespace
}  // namespace holdfast::metric
