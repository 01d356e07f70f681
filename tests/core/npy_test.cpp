#include "holdfast/core/npy.h"

#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/outside.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

template <class Element>
RawArray array_of(ElementType type, std::vector<std::int64_t> shape, const std::vector<Element>& values) {
  RawArray array{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(Element))};
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

// A file as NumPy lays it out, with the given literal.
std::string file_with(const std::string& literal, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(literal.size() >> (8 * i) & 255U);
  return file + literal + data;
}

RawArray parse(const std::string& file) {
  return parse_npy(as_bytes(file), "a.npy");
}

const std::string kFourFloats = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n";

TEST(Npy, WhatIsWrittenReadsBack) {
  const RawArray array = array_of<float>(ElementType::kFloat32, {2, 3}, {1, 2, 3, -4, 0.5F, 1e30F});
  const RawArray back = parse_npy(format_npy(array), "x");
  EXPECT_EQ(back.type, array.type);
  EXPECT_EQ(back.shape, array.shape);
  EXPECT_EQ(back.bytes, array.bytes);
  const TempFolder folder;
  write_npy(folder / "a.npy", array);
  EXPECT_EQ(read_bytes(folder / "a.npy"), format_npy(array));
  EXPECT_EQ(read_npy(folder / "a.npy").bytes, array.bytes);
}

TEST(Npy, DataStartsAtAMultipleOf64) {
  for (std::int64_t size = 1; size < 1'000'000'000'000; size *= 10) {
    // An axis of 0 lets the header grow while the data stays empty.
    EXPECT_EQ(format_npy({ElementType::kFloat32, {size, 0}, {}}).size() % 64, 0U);
  }
}

TEST(Npy, FortranOrderAndBigEndianAreConverted) {
  // [[1, 2, 3], [4, 5, 6]], columns first, big-endian.
  const std::string data("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  const RawArray array = parse(file_with("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", data));
  EXPECT_EQ(array.bytes, (array_of<std::int16_t>(ElementType::kInt16, {2, 3}, {1, 2, 3, 4, 5, 6}).bytes));
}

TEST(Npy, TakesEveryFormOfTheLiteral) {
  const std::string data(16, 'x');
  for (const char* literal :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "{\"shape\":(4,),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "  { 'shape' : ( 4L , ) , 'descr' : '=f4' , 'fortran_order' : True }  \n"}) {
    EXPECT_EQ(parse(file_with(literal, data)).shape, std::vector<std::int64_t>{4}) << literal;
    EXPECT_EQ(parse(file_with(literal, data, 2)).shape, std::vector<std::int64_t>{4}) << literal;
  }
}

TEST(Npy, EveryTruncationIsSeen) {
  const std::string whole = file_with(kFourFloats, std::string(16, 'x'));
  ASSERT_NO_THROW(parse(whole));
  EXPECT_ERROR(parse(""), kInput, "a.npy: is not an npy file");
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_ERROR(parse(whole.substr(0, size)), kInput, size < whole.size() - 16 ? "a.npy: is truncated" : "bytes follow it");
  }
}

TEST(Npy, TrailingBytesAreSeen) {
  EXPECT_ERROR(parse(file_with(kFourFloats, std::string(19, 'x'))), kInput, "a.npy: has 3 bytes behind the array's end");
}

TEST(Npy, ClaimsAboutSizeAreNotBelieved) {
  EXPECT_ERROR(parse(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,)}", "")), kInput,
               "4611686018427387904 bytes, but 0 bytes follow it");
  EXPECT_ERROR(parse(file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,)}", "")), kInput,
               "more than any file holds");
  EXPECT_ERROR(parse(file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", "")), kInput,
               "does not fit 64 bits");
  EXPECT_ERROR(parse(file_with("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "")), kInput, "negative");
  std::string long_header = file_with(kFourFloats, std::string(16, 'x'), 2);
  long_header[11] = '\x7F';
  EXPECT_ERROR(parse(long_header), kInput, "a.npy: is truncated: the npy header claims 2130706490 bytes");
}

TEST(Npy, OtherFilesAreRefused) {
  EXPECT_ERROR(parse("hello, this is text"), kInput, "a.npy: is not an npy file");
  EXPECT_ERROR(parse(std::string("PK\x03\x04") + std::string(30, ' ')), kInput, "is an .npz archive");
  EXPECT_ERROR(parse(file_with(kFourFloats, std::string(16, 'x'), 4)), kInput, "has npy version 4; 1 to 3 can be read");
  EXPECT_ERROR(read_npy("/nowhere/a.npy"), kInput, "cannot read /nowhere/a.npy: No such file or directory");
}

TEST(Npy, TypesThatAreNoNumbersAreRefused) {
  const auto with_type = [](const std::string& type) {
    return file_with("{'descr': " + type + ", 'fortran_order': False, 'shape': (1,)}", "");
  };
  EXPECT_ERROR(parse(with_type("[('a', '<f4'), ('b', '<i4')]")), kInput, "a.npy: has a structured dtype; save each field");
  EXPECT_ERROR(parse(with_type("'|O'")), kInput, "a.npy: has Python objects as elements");
  for (const char* type : {"'<U5'", "'<c8'", "'<f16'", "'<M8[ns]'", "''", "'<'", "'f'"}) {
    EXPECT_ERROR(parse(with_type(type)), kInput, fmt::format("a.npy: has dtype {};", type));
  }
}

TEST(Npy, DamagedHeadersAreRefused) {
  for (const char* literal :
       {"", "{", "{}", "[]", "{'descr'}", "{'descr': '<f4'}", "{'descr': '<f4", "{'descr': <f4}", "{descr: '<f4'}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': True, 'shape': (1,}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': 1}", "{'descr': '<f4', 'fortran_order': True, 'shape': (1.5,)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1,)} more", "{'descr': '<f4' 'fortran_order': True, 'shape': (1,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': True, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), 'extra': 1}"}) {
    // Four bytes of data: what the header would ask for if it were read.
    EXPECT_ERROR(parse(file_with(literal, "data")), kInput, "a.npy: the npy header is damaged: ");
  }
}

TEST(Npy, AgreesWithNumpy) {
  const auto python = python_with("numpy");
  if (!python) GTEST_SKIP() << "no Python with numpy";
  const TempFolder folder;
  const std::vector<std::pair<ElementType, std::size_t>> types{
      {ElementType::kBool, 1},   {ElementType::kUint8, 1},  {ElementType::kInt8, 1},
      {ElementType::kUint16, 2}, {ElementType::kInt16, 2},  {ElementType::kUint32, 4},
      {ElementType::kInt32, 4},  {ElementType::kUint64, 8}, {ElementType::kInt64, 8}};
  for (const auto& [type, size] : types) {
    RawArray array{type, {2, 3}, std::vector<std::byte>(6 * size)};
    for (std::size_t i = 0; i < 6; ++i) array.bytes[i * size] = static_cast<std::byte>(type == ElementType::kBool ? i > 0 : i);
    write_npy(folder / ("own_" + to_string(type) + ".npy"), array);
  }
  write_npy(folder / "own_float16.npy",
            array_of<std::uint16_t>(ElementType::kFloat16, {2, 3}, {0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500}));
  write_npy(folder / "own_float32.npy", array_of<float>(ElementType::kFloat32, {2, 3}, {0, 1, 2, 3, 4, 5}));
  write_npy(folder / "own_float64.npy", array_of<double>(ElementType::kFloat64, {2, 3}, {0, 1, 2, 3, 4, 5}));
  write_npy(folder / "own_shape_.npy", array_of<float>(ElementType::kFloat32, {}, {1}));
  write_npy(folder / "own_shape_5.npy", array_of<float>(ElementType::kFloat32, {5}, {1, 2, 3, 4, 5}));
  write_npy(folder / "own_shape_0x4.npy", array_of<float>(ElementType::kFloat32, {0, 4}, {}));
  ASSERT_EQ(run_python(*python, "tests/core/numpy_reference.py", folder.path()), 0);

  const CsvTable cases = read_csv(folder / "cases.csv");
  EXPECT_GT(cases.rows.size(), 50U);
  for (const auto& row : cases.rows) {
    const RawArray array = read_npy(folder / row[0]);
    EXPECT_EQ(to_string(array.type), row[1]) << row[0];
    EXPECT_EQ(fmt::format("{}", fmt::join(array.shape, "x")), row[2]) << row[0];
    EXPECT_EQ(array.bytes, read_bytes(folder / row[3])) << row[0];
    EXPECT_EQ(parse_npy(read_bytes(folder / row[0]), row[0]).bytes, array.bytes) << row[0];
  }
  EXPECT_ERROR(read_npy(folder / "structured.npy"), kInput, "structured dtype");
  EXPECT_ERROR(read_npy(folder / "object.npy"), kInput, "Python objects");
  EXPECT_ERROR(read_npy(folder / "text.npy"), kInput, "has dtype '<U5'");
  EXPECT_ERROR(read_npy(folder / "complex.npy"), kInput, "has dtype '<c8'");
  EXPECT_ERROR(read_npy(folder / "archive.npz"), kInput, ".npz archive");
}

}  // namespace
}  // namespace holdfast
