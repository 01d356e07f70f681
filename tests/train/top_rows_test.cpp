// The k largest of a row by counting, against a stable sort.
#include "../../src/train/objectives/top_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast::train {
namespace {

template <class Number>
void expect_marks(const std::vector<Number>& values, std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(values.size()) / width;
  for (std::int64_t k = 1; k <= width; ++k) {
    std::vector<Number> marks(values.size(), Number(-7));
    top_rows::mark<Number>({rows, width}, k, values.data(), Number(0.5), Number(-0.25), marks.data());
    for (std::int64_t row = 0; row < rows; ++row) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(width));
      std::iota(order.begin(), order.end(), row * width);
      const auto at = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a) > at(b); });
      for (std::int64_t rank = 0; rank < width; ++rank) {
        const auto i = static_cast<std::size_t>(order[static_cast<std::size_t>(rank)]);
        ASSERT_EQ(marks[i], Number(rank < k ? 0.5 : -0.25)) << "width " << width << ", k " << k << ", row " << row;
      }
    }
  }
}

template <class Number>
class TopRows : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(TopRows, Numbers);

TYPED_TEST(TopRows, MarksWhatASortPutsFirst) {
  for (const std::int64_t width : {1, 2, 7, 8, 31, 33, 100}) {
    RandomStream stream(3, "test.top_rows", static_cast<std::uint64_t>(width));
    std::vector<TypeParam> values(static_cast<std::size_t>(width) * 5);
    for (TypeParam& value : values) value = std::abs(static_cast<TypeParam>(stream.normal()));
    expect_marks(values, width);
  }
}

TYPED_TEST(TopRows, TheFirstOfEqualOnesBelong) {
  expect_marks<TypeParam>({0, 0, 0, 0, 0, 0, 0, 0, 0}, 9);
  expect_marks<TypeParam>({1, 2, 2, 3, 2, 2, 1, 0, 0}, 9);
}

TYPED_TEST(TopRows, NeighbouringNumbersOfAnySizeAreToldApart) {
  using Limits = std::numeric_limits<TypeParam>;
  const TypeParam one = 1, next = std::nextafter(one, Limits::max());
  expect_marks<TypeParam>({one, next, 0, Limits::denorm_min(), Limits::max(), Limits::min(), one, Limits::infinity()}, 8);
}

}  // namespace
}  // namespace holdfast::train
