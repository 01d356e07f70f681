#include "holdfast/core/idx.h"

#include <algorithm>
#include <optional>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast {
namespace {

std::optional<ElementType> element_type(std::uint8_t code) {
  switch (code) {
    case 0x08:
      return ElementType::kUint8;
    case 0x09:
      return ElementType::kInt8;
    case 0x0B:
      return ElementType::kInt16;
    case 0x0C:
      return ElementType::kInt32;
    case 0x0D:
      return ElementType::kFloat32;
    case 0x0E:
      return ElementType::kFloat64;
    default:
      return std::nullopt;
  }
}

std::uint32_t big_endian_32(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (const std::byte part : bytes.first(4)) value = value << 8 | std::to_integer<std::uint32_t>(part);
  return value;
}

// Converts from the file's big-endian order to the machine's.
void reverse_elements(std::vector<std::byte>& bytes, std::size_t element_size) {
  for (auto element = bytes.begin(); element != bytes.end(); element += static_cast<std::ptrdiff_t>(element_size)) {
    std::reverse(element, element + static_cast<std::ptrdiff_t>(element_size));
  }
}

struct IdxHeader {
  ElementType type;
  std::vector<std::int64_t> shape;
  std::size_t size;  // in bytes; the elements follow
};

IdxHeader parse_header(std::span<const std::byte> file, const std::string& where) {
  constexpr std::size_t kMagicSize = 4;
  if (file.size() < kMagicSize || file[0] != std::byte{0} || file[1] != std::byte{0}) input_error("{}: not an idx file", where);
  const auto type = element_type(std::to_integer<std::uint8_t>(file[2]));
  if (!type) input_error("{}: unknown idx element type 0x{:02x}", where, std::to_integer<unsigned>(file[2]));
  const std::size_t dimensions = std::to_integer<std::size_t>(file[3]);
  IdxHeader header{.type = *type, .shape = {}, .size = kMagicSize + 4 * dimensions};
  if (dimensions == 0) input_error("{}: the idx header has no dimensions", where);
  if (file.size() < header.size) input_error("{}: the file ends inside the header of {} dimensions", where, dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) header.shape.push_back(big_endian_32(file.subspan(kMagicSize + 4 * i)));

  const std::size_t available = file.size() - header.size;
  const std::size_t needed = checked_bytes(header.shape, *type, available, where);
  if (available != needed) {
    input_error("{}: shape {} of {} needs {} bytes, the file has {}", where, to_string(header.shape), to_string(*type), needed,
                available);
  }
  return header;
}

RawArray to_array(IdxHeader header, std::vector<std::byte> elements) {
  if (size_of(header.type) > 1) reverse_elements(elements, size_of(header.type));
  return {.type = header.type, .shape = std::move(header.shape), .bytes = std::move(elements)};
}

}  // namespace

RawArray parse_idx(std::span<const std::byte> file, const std::string& where) {
  IdxHeader header = parse_header(file, where);
  const std::span<const std::byte> elements = file.subspan(header.size);
  return to_array(std::move(header), {elements.begin(), elements.end()});
}

RawArray read_idx(const std::string& path) {
  Bytes file = read_maybe_gz(path);
  IdxHeader header = parse_header(file, path);
  // In place: a second buffer of a large file's size costs more than moving the elements up.
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header.size));
  return to_array(std::move(header), std::move(file));
}

}  // namespace holdfast
