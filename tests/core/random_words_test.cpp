// Words and normal numbers made side by side are those of a stream, one after the other.
#include "holdfast/core/random_words.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast {
namespace {

std::vector<std::uint32_t> one_by_one(std::uint64_t index, std::size_t count) {
  RandomStream stream(5, "words", index);
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = stream.bits();
  return words;
}

TEST(StreamWords, AreThoseOfTheStreamForEveryLength) {
  const StreamWords streams(5, "words");
  for (const std::size_t count : {0, 1, 4, 7, 31, 32, 33, 64, 1001}) {
    std::vector<std::uint32_t> words(count);
    streams.fill(0x123456789ABCDEFULL, 0, words);
    EXPECT_EQ(words, one_by_one(0x123456789ABCDEFULL, count)) << count;
  }
}

TEST(StreamWords, GoOnFromAnyBlockEvenAcrossTheCountersCarry) {
  const StreamWords streams(5, "words");
  const std::vector<std::uint32_t> all = one_by_one(9, 200);
  std::vector<std::uint32_t> words(100);
  streams.fill(9, 60, words);
  EXPECT_TRUE(std::equal(words.begin(), words.end(), all.begin() + 60));

  // The counter's first word overflows inside these: the same numbers, asked for in another cut.
  const std::uint64_t before = 4 * (0x100000000ULL - 5);
  std::vector<std::uint32_t> across(96), apart(96);
  streams.fill(9, before, across);
  for (std::size_t i = 0; i < 96; i += 4) streams.fill(9, before + i, std::span(apart).subspan(i, 4));
  EXPECT_EQ(across, apart);
}

TEST(NormalOf, AgreesWithTheStreamsOwn) {
  const StreamWords streams(6, "normal");
  std::vector<std::uint32_t> words(20000);
  std::vector<float> numbers(words.size());
  streams.fill(3, 0, words);
  normal_of(words, numbers);
  RandomStream stream(6, "normal", 3);
  for (const float number : numbers) {
    const double expected = stream.normal();
    ASSERT_NEAR(number, expected, 1e-6 * (1 + std::abs(expected)));
  }
}

TEST(NormalOf, ExtremesAreFinite) {
  const std::vector<std::uint32_t> words{0, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 0x80000000U, 0x80000000U};
  std::vector<float> numbers(words.size());
  normal_of(words, numbers);
  EXPECT_EQ(numbers[0], 0);                                          // log 1
  EXPECT_NEAR(numbers[4], std::sqrt(2 * 24 * std::log(2.0)), 1e-5);  // log 2^-24, no turn
  EXPECT_NEAR(numbers[6], -std::sqrt(2 * std::log(2.0)), 1e-6);      // half a turn
  EXPECT_NEAR(numbers[7], 0, 1e-6);
  for (const float number : numbers) EXPECT_TRUE(std::isfinite(number));
}

TEST(NormalOf, ANumberDoesNotDependOnWhereItStands) {
  const StreamWords streams(6, "normal");
  std::vector<std::uint32_t> words(34);
  streams.fill(1, 0, words);
  std::vector<float> all(34), part(6);
  normal_of(words, all);
  normal_of(std::span(words).subspan(28, 6), part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 28));
}

}  // namespace
}  // namespace holdfast
