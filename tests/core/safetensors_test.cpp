#include "holdfast/core/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/outside.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

constexpr std::array kAllTypes{ElementType::kBool,   ElementType::kUint8,   ElementType::kInt8,     ElementType::kUint16,
                               ElementType::kInt16,  ElementType::kUint32,  ElementType::kInt32,    ElementType::kUint64,
                               ElementType::kInt64,  ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat32,
                               ElementType::kFloat64};

// The arrays that safetensors_reference.py expects.
RawArray example(ElementType type, bool flipped = false) {
  RawArray array{type, {2, 3}, std::vector<std::byte>(6 * size_of(type))};
  for (std::size_t i = 0; i < array.bytes.size(); ++i) {
    if (type == ElementType::kBool) {
      array.bytes[i] = static_cast<std::byte>((i > 0) != flipped);
    } else {
      array.bytes[i] = static_cast<std::byte>(flipped ? 255 - i : i);
    }
  }
  return array;
}

TensorFile example_file() {
  TensorFile file;
  for (const ElementType type : kAllTypes) file.arrays.emplace_back(to_string(type), example(type));
  file.arrays.emplace_back("scalar", RawArray{ElementType::kFloat32, {}, std::vector<std::byte>(4)});
  file.arrays.emplace_back("empty", RawArray{ElementType::kInt64, {0, 4}, {}});
  file.arrays.emplace_back("odd \"name\" \u00e9", example(ElementType::kUint8));
  file.metadata = {{"format", "pt"}, {"odd", "a \"quoted\"\nline"}};
  return file;
}

void expect_same(const TensorFile& a, const TensorFile& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    EXPECT_EQ(a.arrays[i].first, b.arrays[i].first);
    EXPECT_EQ(a.arrays[i].second.type, b.arrays[i].second.type);
    EXPECT_EQ(a.arrays[i].second.shape, b.arrays[i].second.shape);
    EXPECT_EQ(a.arrays[i].second.bytes, b.arrays[i].second.bytes);
  }
}

std::string file_with(const std::string& json, std::size_t data_size, std::optional<std::uint64_t> length = {}) {
  const std::uint64_t claimed = length.value_or(json.size());
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(claimed >> (8 * i) & 255U);
  return file + json + std::string(data_size, 'x');
}

TensorFile parse_tensors(const std::string& file) {
  return parse_safetensors(as_bytes(file), "w.safetensors");
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape, const std::string& offsets) {
  return fmt::format("\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{}]}}", name, type, shape, offsets);
}

TEST(Safetensors, WhatIsWrittenReadsBackInOrder) {
  const TensorFile file = example_file();
  expect_same(parse_safetensors(format_safetensors(file), "x"), file);
  const TempFolder folder;
  write_safetensors(folder / "a.safetensors", file);
  EXPECT_EQ(read_bytes(folder / "a.safetensors"), format_safetensors(file));
  expect_same(read_safetensors(folder / "a.safetensors"), file);
  expect_same(parse_safetensors(format_safetensors({}), "x"), {});
}

TEST(Safetensors, EveryArrayIsAligned) {
  const std::vector<std::byte> bytes = format_safetensors(example_file());
  const std::uint64_t length = std::to_integer<std::uint64_t>(bytes[0]) | std::to_integer<std::uint64_t>(bytes[1]) << 8;
  EXPECT_EQ((8 + length) % 8, 0U);
  // The 8-byte types come before all others although bool was written first.
  const std::string header(as_text(bytes).substr(8, length));
  EXPECT_NE(header.find("\"uint64\":{\"dtype\":\"U64\",\"shape\":[2,3],\"data_offsets\":[0,48]}"), std::string::npos) << header;
}

TEST(Safetensors, FindsByName) {
  const TensorFile file = example_file();
  ASSERT_NE(file.find("int16"), nullptr);
  EXPECT_EQ(file.find("int16")->type, ElementType::kInt16);
  EXPECT_EQ(file.find("gone"), nullptr);
  EXPECT_EQ(*file.find_metadata("format"), "pt");
  EXPECT_EQ(file.find_metadata("gone"), nullptr);
}

TEST(Safetensors, AgreesWithThePythonPackageBothWays) {
  const auto python = python_with("torch, safetensors");
  if (!python) GTEST_SKIP() << "no Python with torch and safetensors";
  const TempFolder folder;
  write_safetensors(folder / "own.safetensors", example_file());
  ASSERT_EQ(run_python(*python, "tests/core/safetensors_reference.py", folder.path()), 0);

  const TensorFile theirs = read_safetensors(folder / "theirs.safetensors");
  EXPECT_EQ(theirs.arrays.size(), kAllTypes.size());
  for (const ElementType type : kAllTypes) {
    const RawArray* array = theirs.find(to_string(type));
    ASSERT_NE(array, nullptr) << to_string(type);
    EXPECT_EQ(array->type, type);
    EXPECT_EQ(array->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(array->bytes, example(type, true).bytes);
  }
  EXPECT_EQ(theirs.metadata.size(), 2U);
  EXPECT_EQ(*theirs.find_metadata("written by"), "Python");
}

TEST(Safetensors, EveryTruncationIsSeen) {
  const std::vector<std::byte> whole = format_safetensors(example_file());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse_safetensors(std::span(whole).first(size), "x"), Error) << size;
  }
  EXPECT_ERROR(parse_tensors("1234567"), kInput,
               "w.safetensors: is truncated: a safetensors file has at least 8 bytes, this one 7");
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "2", "0,8") + "}", 7)), kInput,
               "array 'a' lies at bytes 0 to 8 of 7");
}

TEST(Safetensors, ClaimsAboutSizeAreNotBelieved) {
  EXPECT_ERROR(parse_tensors(file_with("{}", 0, std::uint64_t{1} << 60)), kInput,
               "the header claims 1152921504606846976 bytes, but 2 follow");
  EXPECT_ERROR(parse_tensors(file_with("{}", 0, ~std::uint64_t{0})), kInput, "the header claims 18446744073709551615 bytes");
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "1152921504606846976", "0,4611686018427387904") + "}", 8)), kInput,
               "of 8");
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "1152921504606846976", "0,8") + "}", 8)), kInput,
               "array 'a': the header claims float32 elements of shape [1152921504606846976]");
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "4294967296,4294967296,4", "0,8") + "}", 8)), kInput,
               "more than any file holds");
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "18446744073709551615", "0,8") + "}", 8)), kInput, "above 2^63");
}

TEST(Safetensors, EveryByteBelongsToOneArray) {
  const std::string a = entry("a", "F32", "2", "0,8");
  EXPECT_NO_THROW(parse_tensors(file_with("{" + entry("b", "F32", "1", "8,12") + "," + a + "}", 12)));
  EXPECT_ERROR(parse_tensors(file_with("{" + a + "," + entry("b", "F32", "1", "4,8") + "}", 8)), kInput,
               "array 'b' starts at byte 4, inside another that ends at 8");
  EXPECT_ERROR(parse_tensors(file_with("{" + a + "," + entry("b", "F32", "1", "9,13") + "}", 13)), kInput,
               "bytes 8 to 9 before array 'b' belong to no array");
  EXPECT_ERROR(parse_tensors(file_with("{" + a + "}", 11)), kInput, "has 3 bytes behind the last array's end");
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "2", "8,0") + "}", 8)), kInput, "lies at bytes 8 to 0 of 8");
  EXPECT_ERROR(parse_tensors(file_with("{}", 1)), kInput, "has 1 bytes behind");
}

TEST(Safetensors, ShapesMustFitTheirBytes) {
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "1", "0,8") + "}", 8)), kInput,
               "array 'a' of float32 [1] needs 4 bytes, its data_offsets give 8");
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F64", "2,0", "0,8") + "}", 8)), kInput, "needs 0 bytes");
}

TEST(Safetensors, NamesComeOnce) {
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F32", "1", "0,4") + "," + entry("a", "F32", "1", "4,8") + "}", 8)),
               kInput, "the name 'a' is there twice");
  EXPECT_ERROR(parse_tensors(file_with(R"({"__metadata__":{"k":"1","k":"2"}})", 0)), kInput, "the name 'k' is there twice");
  EXPECT_ERROR(parse_tensors(file_with(R"({"__metadata__":{},"__metadata__":{}})", 0)), kInput,
               "the name '__metadata__' is there twice");
  EXPECT_ERROR(parse_tensors(file_with(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4)), kInput,
               "'dtype' is there twice");
}

TEST(Safetensors, DamagedHeadersAreRefused) {
  for (const char* json : {"",
                           " ",
                           "[]",
                           "1",
                           "{",
                           "{}}",
                           "{\"a\"}",
                           "{\"a\":1}",
                           "{\"a\":[]}",
                           "{\"a\":null}",
                           "{\"a\":{}}",
                           "{\"a\":{\"dtype\":\"F32\"}}",
                           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
                           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})",
                           R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
                           R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
                           R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})",
                           R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",
                           R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})",
                           R"({"a":{"dtype":4,"shape":[1],"data_offsets":[0,4]}})",
                           R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})",
                           R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":"x"}})",
                           R"({"a":{"dtype":"F32","shape":{"x":1},"data_offsets":[0,4]}})",
                           R"({"__metadata__":{"k":1}})",
                           R"({"__metadata__":{"k":{}}})",
                           R"({"__metadata__":[]})",
                           "{\"caf\xE9\":{}}"}) {
    EXPECT_ERROR(parse_tensors(file_with(json, 4)), kInput, "w.safetensors: the safetensors header is damaged: ");
  }
}

TEST(Safetensors, ASealSaysWhetherAFileIsAsItWasWritten) {
  TensorFile file;
  file.metadata.emplace_back("samples", "8");
  file.arrays.emplace_back("a", RawArray{ElementType::kUint8, {2}, {std::byte{1}, std::byte{2}}});
  EXPECT_FALSE(is_sealed(file));
  seal(file);
  const TensorFile read = parse_safetensors(format_safetensors(file), "x");
  EXPECT_TRUE(is_sealed(read));
  const auto is_still_sealed = [&](const std::function<void(TensorFile&)>& change) {
    TensorFile changed = read;
    change(changed);
    return is_sealed(changed);
  };
  EXPECT_FALSE(is_still_sealed([](TensorFile& changed) { changed.arrays[0].second.bytes[1] ^= std::byte{1}; }));
  EXPECT_FALSE(is_still_sealed([](TensorFile& changed) { changed.arrays[0].second.type = ElementType::kInt8; }));
  EXPECT_FALSE(is_still_sealed([](TensorFile& changed) { changed.arrays[0].first = "b"; }));
  EXPECT_FALSE(is_still_sealed([](TensorFile& changed) { changed.metadata[0].second = "9"; }));
  EXPECT_FALSE(is_still_sealed([](TensorFile& changed) { changed.metadata.emplace_back("more", ""); }));
}

TEST(Safetensors, UnknownTypesAreNamed) {
  EXPECT_ERROR(parse_tensors(file_with("{" + entry("a", "F8_E4M3", "4", "0,4") + "}", 4)), kInput,
               "array 'a' has dtype F8_E4M3, which is not supported");
}

TEST(Safetensors, DepthAndCountOfNamesCostNoMoreThanReading) {
  EXPECT_ERROR(parse_tensors(file_with(std::string(1'000'000, '{'), 0)), kInput, "damaged");
  std::string deep = "{\"a\":{\"shape\":";
  EXPECT_ERROR(parse_tensors(file_with(deep + std::string(1'000'000, '['), 0)), kInput, "damaged");
  TensorFile many;
  for (int i = 0; i < 50'000; ++i)
    many.arrays.emplace_back(fmt::format("layer{}.weight", i), RawArray{ElementType::kUint8, {0}, {}});
  EXPECT_EQ(parse_safetensors(format_safetensors(many), "x").arrays.size(), 50'000U);
}

}  // namespace
}  // namespace holdfast
