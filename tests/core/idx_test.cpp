#include "holdfast/core/idx.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/outside.h"

namespace holdfast {
namespace {

template <std::size_t kSize>
RawArray read_idx_literal(const char (&literal)[kSize]) {
  return parse_idx(as_bytes(std::string_view(literal, kSize - 1)), "x.idx");
}

template <class Value>
std::vector<Value> values(const RawArray& array) {
  std::vector<Value> result(array.bytes.size() / sizeof(Value));
  std::memcpy(result.data(), array.bytes.data(), array.bytes.size());
  return result;
}

TEST(Idx, ReadsBytesInTheFilesShape) {
  const RawArray array = read_idx_literal(
      "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
      "abcdef");
  EXPECT_EQ(array.type, ElementType::kUint8);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(values<char>(array), (std::vector<char>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST(Idx, TurnsBigEndianElementsRound) {
  EXPECT_EQ(values<std::int16_t>(read_idx_literal("\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe")),
            (std::vector<std::int16_t>{258, -2}));
  EXPECT_EQ(values<std::int32_t>(read_idx_literal("\0\0\x0c\x01\0\0\0\x01\0\0\x01\0")), (std::vector<std::int32_t>{256}));
  EXPECT_EQ(values<float>(read_idx_literal("\0\0\x0d\x01\0\0\0\x01\x3f\xc0\0\0")), (std::vector<float>{1.5F}));
  EXPECT_EQ(values<double>(read_idx_literal("\0\0\x0e\x01\0\0\0\x01\xc0\x08\0\0\0\0\0\0")), (std::vector<double>{-3}));
}

TEST(Idx, AnEmptyDimensionIsAnEmptyArray) {
  EXPECT_EQ(read_idx_literal("\0\0\x08\x02\0\0\0\0\0\0\0\x03").count(), 0);
}

TEST(Idx, RefusesWhatIsNotIdx) {
  EXPECT_ERROR(read_idx_literal(""), kInput, "x.idx: not an idx file");
  EXPECT_ERROR(read_idx_literal("PK\x08\x01"), kInput, "not an idx file");
  EXPECT_ERROR(read_idx_literal("\0\0\x07\x01\0\0\0\0"), kInput, "unknown idx element type 0x07");
  EXPECT_ERROR(read_idx_literal("\0\0\x08\0"), kInput, "no dimensions");
  EXPECT_ERROR(read_idx_literal("\0\0\x08\x02\0\0\0\x02"), kInput, "ends inside the header of 2 dimensions");
}

TEST(Idx, TheHeadersSizesAreCheckedAgainstTheFile) {
  EXPECT_ERROR(read_idx_literal("\0\0\x08\x01\0\0\0\x03"
                                "ab"),
               kInput, "x.idx");
  EXPECT_ERROR(read_idx_literal("\0\0\x08\x01\0\0\0\x01"
                                "ab"),
               kInput, "needs 1 bytes, the file has 2");
  EXPECT_ERROR(read_idx_literal("\0\0\x0e\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), kInput, "x.idx");
}

TEST(Idx, ReadsMnist) {
  SKIP_WITHOUT_DATA(folder, "mnist");
  const RawArray images = read_idx(folder + "/t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(images.shape, (std::vector<std::int64_t>{10000, 28, 28}));
  const std::vector<std::uint8_t> labels = values<std::uint8_t>(read_idx(folder + "/t10k-labels-idx1-ubyte.gz"));
  ASSERT_EQ(labels.size(), 10000U);
  EXPECT_EQ(std::vector<std::uint8_t>(labels.begin(), labels.begin() + 8), (std::vector<std::uint8_t>{7, 2, 1, 0, 4, 1, 4, 9}));
}

}  // namespace
}  // namespace holdfast
