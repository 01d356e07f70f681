#include "holdfast/core/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  ElementType type = ElementType::kFloat32;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_begin = 0;
  std::size_t data_size = 0;
};

// Reads the one Python literal a header is: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  // Takes `letter` when it comes next.
  bool take(char letter) {
    skip_spaces();
    if (text_.empty() || text_.front() != letter) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char letter) {
    if (!take(letter)) damaged(fmt::format("'{}' is missing", letter));
  }
  bool next_is(char letter) {
    skip_spaces();
    return !text_.empty() && text_.front() == letter;
  }
  bool at_end() {
    skip_spaces();
    return text_.empty();
  }

  std::string_view quoted() {
    const char quote = take('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) damaged("a quote is not closed");
    return cut(end, 1);
  }
  bool flag() {
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}}) {
      skip_spaces();
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    }
    damaged("fortran_order is neither True nor False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!take(')')) {
      values.push_back(number());
      if (!next_is(')')) expect(',');
    }
    return values;
  }

  [[noreturn]] void damaged(const std::string& why) const { input_error("{}: the npy header is damaged: {}", where_, why); }

 private:
  std::int64_t number() {
    skip_spaces();
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (status == std::errc::result_out_of_range) damaged("a size of the shape does not fit 64 bits");
    if (status != std::errc()) damaged("the shape is not a tuple of whole numbers");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    take('L');  // Python 2 wrote long numbers so
    return value;
  }
  std::string_view cut(std::size_t size, std::size_t behind) {
    const std::string_view part = text_.substr(0, size);
    text_.remove_prefix(size + behind);
    return part;
  }
  void skip_spaces() {
    while (!text_.empty() && std::string_view(" \t\r\n").find(text_.front()) != std::string_view::npos) text_.remove_prefix(1);
  }

  std::string_view text_;
  const std::string& where_;
};

std::optional<ElementType> element_type(std::string_view code) {
  static constexpr std::array<std::pair<std::string_view, ElementType>, 12> kCodes{{
      {"b1", ElementType::kBool},
      {"u1", ElementType::kUint8},
      {"i1", ElementType::kInt8},
      {"u2", ElementType::kUint16},
      {"i2", ElementType::kInt16},
      {"u4", ElementType::kUint32},
      {"i4", ElementType::kInt32},
      {"u8", ElementType::kUint64},
      {"i8", ElementType::kInt64},
      {"f2", ElementType::kFloat16},
      {"f4", ElementType::kFloat32},
      {"f8", ElementType::kFloat64},
  }};
  for (const auto& [known, type] : kCodes) {
    if (known == code) return type;
  }
  return std::nullopt;
}

std::string_view code_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "|b1";
    case ElementType::kUint8:
      return "|u1";
    case ElementType::kInt8:
      return "|i1";
    case ElementType::kUint16:
      return "<u2";
    case ElementType::kInt16:
      return "<i2";
    case ElementType::kUint32:
      return "<u4";
    case ElementType::kInt32:
      return "<i4";
    case ElementType::kUint64:
      return "<u8";
    case ElementType::kInt64:
      return "<i8";
    case ElementType::kFloat16:
      return "<f2";
    case ElementType::kFloat32:
      return "<f4";
    case ElementType::kFloat64:
      return "<f8";
    case ElementType::kBfloat16:
      break;  // NumPy has none
  }
  HOLDFAST_CHECK(type != ElementType::kBfloat16);
  return "";
}

void read_type(HeaderText& text, Header& header, const std::string& where) {
  if (text.next_is('[')) input_error("{}: has a structured dtype; save each field as an array of its own", where);
  const std::string_view code = text.quoted();
  if (code.ends_with('O'))
    input_error("{}: has Python objects as elements; save it with a numeric dtype, as array.astype('float32')", where);
  const bool ordered = !code.empty() && std::string_view("<>=|").find(code.front()) != std::string_view::npos;
  const auto type = element_type(code.substr(ordered ? 1 : 0));
  if (!type) input_error("{}: has dtype '{}'; bool, integers and float16, float32 and float64 can be read", where, code);
  header.type = *type;
  header.big_endian = code.front() == '>';
}

void read_literal(std::string_view literal, Header& header, const std::string& where) {
  HeaderText text(literal, where);
  bool has_type = false, has_order = false, has_shape = false;
  const auto once = [&](bool& seen, std::string_view key) {
    if (std::exchange(seen, true)) text.damaged(fmt::format("'{}' is there twice", key));
  };
  text.expect('{');
  while (!text.take('}')) {
    const std::string_view key = text.quoted();
    text.expect(':');
    if (key == "descr") {
      once(has_type, key);
      read_type(text, header, where);
    } else if (key == "fortran_order") {
      once(has_order, key);
      header.fortran_order = text.flag();
    } else if (key == "shape") {
      once(has_shape, key);
      header.shape = text.tuple();
    } else {
      text.damaged(fmt::format("it has the unknown key '{}'", key));
    }
    if (!text.next_is('}')) text.expect(',');
  }
  if (!text.at_end()) text.damaged("there is more behind the closing brace");
  if (!has_type || !has_order || !has_shape) text.damaged("it lacks one of 'descr', 'fortran_order', 'shape'");
}

Header read_header(std::span<const std::byte> file, const std::string& where) {
  const std::string_view text = as_text(file);
  if (text.starts_with("PK\x03\x04"))
    input_error("{}: is an .npz archive; save the one array that is meant with numpy.save", where);
  if (text.empty() || !kMagic.starts_with(text.substr(0, kMagic.size()))) {
    const std::string_view start = text.substr(0, 512);  // no more: the file may be larger than the memory
    const bool table = start.substr(0, start.find('\n')).find_first_of(",;\t") != std::string_view::npos &&
                       start.find('\0') == std::string_view::npos;
    input_error("{}: is not an npy file (it does not start with \\x93NUMPY){}", where,
                table ? "; it looks like a table: save its numbers with numpy.save, or audit it by a configuration with the data "
                        "csv(path=...,label=...), which knows its columns"
                      : "");
  }
  if (file.size() < 12) input_error("{}: is truncated: it ends within the npy header", where);
  const int version = std::to_integer<int>(file[6]);
  if (version < 1 || version > 3) input_error("{}: has npy version {}; 1 to 3 can be read", where, version);
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::size_t>(file[8 + i]) << (8 * i);

  Header header;
  header.data_begin = 8 + length_bytes + length;
  if (header.data_begin > file.size()) {
    input_error("{}: is truncated: the npy header claims {} bytes, but {} follow", where, length, file.size() - 8 - length_bytes);
  }
  read_literal(text.substr(8 + length_bytes, length), header, where);
  const std::size_t available = file.size() - header.data_begin;
  header.data_size = checked_bytes(header.shape, header.type, available, where);
  if (header.data_size < available) input_error("{}: has {} bytes behind the array's end", where, available - header.data_size);
  return header;
}

void swap_bytes(std::vector<std::byte>& bytes, std::size_t size) {
  for (auto element = bytes.begin(); element != bytes.end(); element += static_cast<std::ptrdiff_t>(size)) {
    std::reverse(element, element + static_cast<std::ptrdiff_t>(size));
  }
}

// From first axis fastest to last axis fastest: walks the result in its order and steps through the source.
template <std::size_t kSize>
std::vector<std::byte> to_row_major(const std::vector<std::byte>& source, const std::vector<std::int64_t>& shape) {
  std::vector<std::byte> result(source.size());
  std::vector<std::int64_t> strides(shape.size()), position(shape.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  std::int64_t from = 0;
  for (std::size_t to = 0; to < result.size(); to += kSize) {
    std::memcpy(result.data() + to, source.data() + static_cast<std::size_t>(from) * kSize, kSize);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += strides[axis];
      if (++position[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      position[axis] = 0;
    }
  }
  return result;
}

std::vector<std::byte> to_row_major(const std::vector<std::byte>& source, const std::vector<std::int64_t>& shape,
                                    std::size_t size) {
  switch (size) {
    case 1:
      return to_row_major<1>(source, shape);
    case 2:
      return to_row_major<2>(source, shape);
    case 4:
      return to_row_major<4>(source, shape);
    default:
      return to_row_major<8>(source, shape);
  }
}

RawArray finish(Header header, std::vector<std::byte> bytes) {
  const std::size_t size = size_of(header.type);
  if (header.big_endian && size > 1) swap_bytes(bytes, size);
  if (header.fortran_order && header.shape.size() > 1 && !bytes.empty()) bytes = to_row_major(bytes, header.shape, size);
  return {header.type, std::move(header.shape), std::move(bytes)};
}

std::string format_header(ElementType type, const std::vector<std::int64_t>& shape) {
  const std::string sizes = fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string literal = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", code_of(type), sizes);
  // Version 1: magic, version and length take ten bytes; the array starts at a multiple of 64.
  literal.append(63 - (10 + literal.size()) % 64, ' ');
  literal += '\n';
  HOLDFAST_CHECK(literal.size() < 65536);
  std::string header(kMagic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, literal.size() % 256, literal.size() / 256})
    header += static_cast<char>(byte);
  return header + literal;
}

}  // namespace

RawArray parse_npy(std::span<const std::byte> file, const std::string& where) {
  Header header = read_header(file, where);
  const auto data = file.subspan(header.data_begin);
  check_memory(data.size(), where);
  return finish(std::move(header), {data.begin(), data.end()});
}

RawArray read_npy(const std::string& path) {
  // Mapped: the header is checked before memory is taken.
  return parse_npy(MappedBytes::of_file(path).bytes(), path);
}

NpyFacts read_npy_facts(const std::string& path) {
  Header header = read_header(MappedBytes::of_file(path).bytes(), path);
  return {header.type, std::move(header.shape)};
}

std::optional<MappedNpy> map_npy(const std::string& path) {
  MappedBytes file = MappedBytes::of_file(path);
  Header header = read_header(file.bytes(), path);
  // NumPy aligns the elements to 64 bytes; other writers may not.
  const bool as_it_lies = !header.fortran_order && !header.big_endian && header.data_begin % size_of(header.type) == 0;
  if (!as_it_lies || !is_large(header.data_size)) return std::nullopt;
  const std::span<const std::byte> bytes = file.bytes().subspan(header.data_begin);
  return MappedNpy{header.type, std::move(header.shape), std::move(file), bytes};
}

std::vector<std::byte> format_npy(const RawArray& array) {
  const std::string header = format_header(array.type, array.shape);
  std::vector<std::byte> file(as_bytes(header).begin(), as_bytes(header).end());
  file.insert(file.end(), array.bytes.begin(), array.bytes.end());
  return file;
}

void write_npy(const std::string& path, const RawArray& array) {
  write_npy(path, array.type, array.shape, array.bytes);
}

void write_npy(const std::string& path, ElementType type, const std::vector<std::int64_t>& shape,
               std::span<const std::byte> bytes) {
  const std::string header = format_header(type, shape);
  const std::array<std::span<const std::byte>, 2> parts{as_bytes(header), bytes};
  write_atomic(path, parts);
}

}  // namespace holdfast
