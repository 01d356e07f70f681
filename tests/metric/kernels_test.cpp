// The vector versions against the plain ones, and selection against sorting, on maps that try to defeat it.
#include "../../src/metric/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "../../src/metric/kernels/order.h"
#include "../../src/metric/kernels/select.h"
#include "holdfast/metric/top_k.h"
#include "maps.h"

namespace holdfast::metric {
namespace {

// Maps of the kinds that explanations have, and worse.
std::vector<std::vector<double>> hard_maps(std::int64_t size) {
  RandomStream stream(1, "test");
  std::vector<std::vector<double>> maps{random_map(stream, size), random_map(stream, size, 2), random_map(stream, size, 40)};
  std::vector<double> map(static_cast<std::size_t>(size));
  const auto fill = [&](const std::function<double(std::size_t)>& value) {
    for (std::size_t i = 0; i < map.size(); ++i) map[i] = value(i);
    maps.push_back(map);
  };
  fill([](std::size_t) { return 0; });
  fill([](std::size_t) { return 3.5; });
  fill([&](std::size_t) { return stream.uniform() < 0.8 ? 0 : std::abs(stream.normal()); });
  fill([&](std::size_t) { return std::exp(30 * stream.normal()); });
  fill([&](std::size_t i) { return i % 7 == 0 ? 1e300 : 1e-300 * stream.uniform(); });
  fill([&](std::size_t) { return 1 + 1e-15 * static_cast<double>(stream.below(5)); });
  fill([&](std::size_t i) { return i == 3 ? 1e18 : stream.uniform(); });
  fill([](std::size_t i) { return static_cast<double>(i); });
  fill([&](std::size_t) { return 5e-324 * static_cast<double>(stream.below(4)); });
  return maps;
}

TEST(Kernels, FastOnesGiveWhatPlainOnesGive) {
  RandomStream stream(2, "test");
  for (const std::int64_t size : {1, 2, 3, 4, 7, 8, 9, 28, 63, 64, 65, 130, 784}) {
    for (const std::vector<double>& map : hard_maps(size)) {
      std::vector<std::int32_t> halves(map.size()), plain_halves(map.size());
      const std::int32_t largest = kernels::upper_halves(map, halves.data());
      EXPECT_EQ(largest, kernels::plain::upper_halves(map, plain_halves.data()));
      EXPECT_EQ(kernels::count_above(halves, largest / 2), kernels::plain::count_above(plain_halves, largest / 2));
      EXPECT_EQ(halves, plain_halves);
      std::vector<double> kept(map.size()), expected(map.size());
      const std::int32_t from = halves[stream.below(map.size())], to = halves[stream.below(map.size())];
      const std::int64_t count = kernels::keep_between(map, halves.data(), from, to, kept.data());
      ASSERT_EQ(count, kernels::plain::keep_between(map, halves.data(), from, to, expected.data()));
      EXPECT_EQ(kept, expected);
      const double low = map[stream.below(map.size())];
      EXPECT_EQ(kernels::count_above(map, low), kernels::plain::count_above(map, low));
      std::vector<std::uint64_t> bits(map.size() / 64 + 1), plain_bits(map.size() / 64 + 1);
      kernels::bits_at_least(map, map.size(), low, bits.data());
      kernels::plain::bits_at_least(map, map.size(), low, plain_bits.data());
      EXPECT_EQ(bits, plain_bits);
      std::vector<std::int16_t> small(map.size());
      for (std::int16_t& value : small) value = static_cast<std::int16_t>(stream.below(9));
      EXPECT_EQ(kernels::count_exchanges(small), kernels::plain::count_exchanges(small));
      EXPECT_EQ(kernels::count_bits(bits, plain_bits), kernels::plain::count_bits(bits, plain_bits));
    }
  }
}

TEST(Kernels, PlainOnesFollowTheirDefinition) {
  const std::vector<double> map{3, 0, 5, 5, 1};
  std::vector<std::int32_t> halves(map.size());
  EXPECT_EQ(kernels::plain::upper_halves(map, halves.data()), 0x40140000) << "of 5";
  EXPECT_EQ(halves, (std::vector<std::int32_t>{0x40080000, 0, 0x40140000, 0x40140000, 0x3FF00000}));
  EXPECT_EQ(kernels::plain::count_above(halves, 0x3FF00000), 3);
  EXPECT_EQ(kernels::plain::count_above(map, 1), 3);
  double kept[5];
  EXPECT_EQ(kernels::plain::keep_between(map, halves.data(), 0x3FF00000, 0x40140000, kept), 3) << "above 1, at most 5";
  EXPECT_EQ(kept[0], 3);
  EXPECT_EQ(kernels::plain::count_exchanges(std::vector<std::int16_t>{2, 3, 1, 1}), 4);
  std::uint64_t bits = 0;
  kernels::plain::bits_at_least(map, 5, 3, &bits);
  EXPECT_EQ(bits, 0b01101U);
}

TEST(Threshold, IsTheKthOfASort) {
  for (const std::int64_t size : {5, 95, 96, 97, 784, 3000}) {
    for (const std::vector<double>& map : hard_maps(size)) {
      std::vector<double> sorted = map;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      for (const std::int64_t k : {std::int64_t{1}, size / 8 + 1, size / 2, size - 1, size}) {
        if (k < 1) continue;
        const double value = sorted[static_cast<std::size_t>(k - 1)];
        const Threshold threshold = threshold_of(map, k);
        EXPECT_EQ(threshold.value, value);
        EXPECT_EQ(threshold.ties, k - std::count_if(map.begin(), map.end(), [&](double other) { return other > value; }));
      }
    }
  }
}

TEST(Threshold, TakesValuesBelowZeroToo) {
  RandomStream stream(3, "test");
  std::vector<double> map(300);
  for (double& value : map) value = stream.normal();
  std::vector<double> sorted = map;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  EXPECT_EQ(threshold_of(map, 250).value, sorted[249]);
}

TEST(TopKBits, AreThePositionsOfTheSet) {
  for (const auto& [rows, width] : {std::pair<std::int64_t, std::int64_t>{28, 28}, {1, 784}, {10, 64}, {3, 130}, {1, 1}}) {
    for (const std::vector<double>& map : hard_maps(rows * width)) {
      FeatureSet set(rows, width);
      for (const std::int64_t k : {std::int64_t{1}, (rows * width + 3) / 4, rows * width}) {
        top_k_bits(map, k, set);
        EXPECT_EQ(set.members(), top_k_set(map, k));
      }
    }
  }
}

TEST(SortAscending, EqualsAStableSort) {
  for (const std::int64_t size : {1, 2, 30, 784, 5000}) {
    for (const std::vector<double>& map : hard_maps(size)) {
      std::vector<Ranked> sorted;
      sort_ascending(map, sorted);
      std::vector<std::uint32_t> expected(map.size()), order;
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::uint32_t>(i);
      std::stable_sort(expected.begin(), expected.end(), [&](std::uint32_t a, std::uint32_t b) { return map[a] < map[b]; });
      ASSERT_EQ(sorted.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(sorted[i].feature, expected[i]);
      std::stable_sort(expected.begin(), expected.end(), [&](std::uint32_t a, std::uint32_t b) { return map[a] > map[b]; });
      sort_descending(map, order);
      EXPECT_EQ(order, expected);
    }
  }
}

}  // namespace
}  // namespace holdfast::metric
