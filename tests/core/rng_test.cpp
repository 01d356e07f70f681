#include "holdfast/core/rng.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace holdfast {
namespace {

// The vectors of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, MatchesThePublishedVectors) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsNamedBySeedPurposeAndIndex) {
  const auto first = [](std::uint64_t seed, const char* purpose, std::uint64_t index) {
    return RandomStream(seed, purpose, index).bits();
  };
  EXPECT_EQ(first(1, "a", 2), first(1, "a", 2));
  const std::set<std::uint32_t> different{first(1, "a", 2), first(2, "a", 2), first(1, "b", 2), first(1, "a", 3)};
  EXPECT_EQ(different.size(), 4U);
}

TEST(RandomStream, NormalHasTheRightMoments) {
  RandomStream stream(0, "moments");
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double value = stream.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream stream(0, "below");
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[stream.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomStream, PermutationHoldsEveryNumberOnce) {
  std::vector<std::int64_t> order = RandomStream(3, "order").permutation(1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace holdfast
