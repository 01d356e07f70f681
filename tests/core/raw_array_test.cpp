#include "holdfast/core/raw_array.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace holdfast {
namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 40;

TEST(RawArray, CountsElements) {
  EXPECT_EQ((RawArray{ElementType::kUint8, {2, 3, 4}, {}}.count()), 24);
  EXPECT_EQ((RawArray{ElementType::kUint8, {}, {}}.count()), 1);
  EXPECT_EQ((RawArray{ElementType::kUint8, {std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, {}}.count()), 0);
}

TEST(RawArray, ShapesReadAsLists) {
  EXPECT_EQ(to_string(std::vector<std::int64_t>{8, 3, 32}), "[8, 3, 32]");
  EXPECT_EQ(to_string(std::vector<std::int64_t>{}), "[]");
}

TEST(CheckedBytes, MultipliesShapeAndElementSize) {
  EXPECT_EQ(checked_bytes({3, 5}, ElementType::kFloat64, kPlenty, "x"), 120U);
  EXPECT_EQ(checked_bytes({}, ElementType::kInt16, kPlenty, "x"), 2U);
  EXPECT_EQ(checked_bytes({7, 0, 9}, ElementType::kInt16, 0, "x"), 0U);
  EXPECT_EQ(checked_bytes({3, 5}, ElementType::kBool, 15, "x"), 15U);
}

TEST(CheckedBytes, RefusesWhatCannotBe) {
  EXPECT_ERROR(checked_bytes({3, 5}, ElementType::kFloat32, 59, "a.npy"), kInput,
               "a.npy: the header claims float32 elements of shape [3, 5], 60 bytes, but 59 bytes follow it");
  EXPECT_ERROR(checked_bytes({4, -1}, ElementType::kFloat32, kPlenty, "a.npy"), kInput, "negative size");
  EXPECT_ERROR(checked_bytes({std::int64_t{1} << 60}, ElementType::kFloat32, kPlenty, "a.npy"), kInput,
               "but 1099511627776 bytes follow it");
  EXPECT_ERROR(checked_bytes({std::int64_t{1} << 60}, ElementType::kFloat64, kPlenty, "a.npy"), kInput,
               "more than any file holds");
  // Each size fits, their product wraps round to something small.
  EXPECT_ERROR(checked_bytes({std::int64_t{1} << 32, std::int64_t{1} << 32, 16}, ElementType::kUint8, kPlenty, "a.npy"), kInput,
               "more than any file holds");
  // An axis of 0 does not excuse sizes that no strides could hold.
  EXPECT_ERROR(checked_bytes({0, std::int64_t{1} << 60, 1024}, ElementType::kUint8, kPlenty, "a.npy"), kInput,
               "more than any file holds");
  EXPECT_ERROR(checked_bytes(std::vector<std::int64_t>(1000, 1), ElementType::kUint8, kPlenty, "a.npy"), kInput, "1000 axes");
}

}  // namespace
}  // namespace holdfast
