#include "../../src/measure/gaps.h"

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::measure {
namespace {

struct Plain {
  double share = 0, mean = 0;
};

// The definition: all pairs, one after the other.
Plain plain(const std::vector<double>& clean, const std::vector<double>& values, std::int64_t k) {
  const std::vector<std::int64_t> ranked = top_k_ranked(clean, static_cast<std::int64_t>(clean.size()));
  Plain result;
  const auto count = static_cast<std::size_t>(k);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = count; j < ranked.size(); ++j) {
      const double gap = values[static_cast<std::size_t>(ranked[i])] - values[static_cast<std::size_t>(ranked[j])];
      result.share += gap >= 0;
      result.mean += gap;
    }
  }
  const double pairs = static_cast<double>(count * (ranked.size() - count));
  return {result.share / pairs, result.mean / pairs};
}

// Whole numbers up to `levels`: few of them make many ties.
std::vector<double> random_map(std::size_t size, std::uint64_t levels, RandomStream& stream) {
  std::vector<double> values(size);
  for (double& value : values) value = static_cast<double>(stream.below(levels));
  return values;
}

TEST(Gaps, EqualAllPairsOneByOne) {
  RandomStream stream(1, "test");
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t size = 2 + stream.below(40);
    const std::uint64_t levels = 1 + stream.below(60);
    const std::vector<double> clean = random_map(size, levels, stream), values = random_map(size, levels, stream);
    const std::int64_t k = 1 + static_cast<std::int64_t>(stream.below(size - 1));
    Gaps gaps = top_k_gaps(clean, k);
    const Plain expected = plain(clean, values, k);
    EXPECT_NEAR(gaps.share_in_order(values), expected.share, 1e-12);
    EXPECT_NEAR(gaps.mean_gap(values), expected.mean, 1e-9);
    EXPECT_EQ(gaps.share_in_order(clean), 1);
  }
}

TEST(Gaps, ThePairOfTwoRanks) {
  const std::vector<double> clean{5, 9, 1, 7};  // ranks 3, 1, 4, 2
  Gaps gaps = pair_gap(clean, 2, 4);
  EXPECT_EQ(gaps.mean_gap(clean), 7 - 1);
  EXPECT_EQ(gaps.share_in_order(std::vector<double>{0, 0, 3, 3}), 1) << "a tie is in order";
  EXPECT_EQ(gaps.share_in_order(std::vector<double>{0, 0, 3.5, 3}), 0);
}

TEST(Gaps, AllTheOthersAbove) {
  Gaps gaps = top_k_gaps(std::vector<double>{4, 3, 2, 1}, 2);
  EXPECT_EQ(gaps.share_in_order(std::vector<double>{1, 2, 3, 4}), 0);
  EXPECT_EQ(gaps.mean_gap(std::vector<double>{1, 2, 3, 4}), -2);
}

}  // namespace
}  // namespace holdfast::measure
