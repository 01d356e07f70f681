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

// From the file's big-endian order to the machine's.
void reverse_elements(std::vector<std::byte>& bytes, std::size_t element_size) {
  for (auto element = bytes.begin(); element != bytes.end(); element += static_cast<std::ptrdiff_t>(element_size)) {
    std::reverse(element, element + static_cast<std::ptrdiff_t>(element_size));
  }
}

}  // namespace

RawArray parse_idx(std::span<const std::byte> file, const std::string& where) {
  constexpr std::size_t kMagicSize = 4;
  if (file.size() < kMagicSize || file[0] != std::byte{0} || file[1] != std::byte{0}) input_error("{}: not an idx file", where);
  const auto type = element_type(std::to_integer<std::uint8_t>(file[2]));
  if (!type) input_error("{}: unknown idx element type 0x{:02x}", where, std::to_integer<unsigned>(file[2]));
  const std::size_t dimensions = std::to_integer<std::size_t>(file[3]);
  const std::size_t header_size = kMagicSize + 4 * dimensions;
  if (dimensions == 0) input_error("{}: the idx header has no dimensions", where);
  if (file.size() < header_size) input_error("{}: the file ends inside the header of {} dimensions", where, dimensions);

  RawArray array{.type = *type};
  for (std::size_t i = 0; i < dimensions; ++i) array.shape.push_back(big_endian_32(file.subspan(kMagicSize + 4 * i)));
  const std::span<const std::byte> content = file.subspan(header_size);
  const std::size_t size = checked_bytes(array.shape, *type, content.size(), where);
  if (content.size() != size) {
    input_error("{}: shape {} of {} needs {} bytes, the file has {}", where, to_string(array.shape), to_string(*type), size,
                content.size());
  }
  array.bytes.assign(content.begin(), content.end());
  if (size_of(*type) > 1) reverse_elements(array.bytes, size_of(*type));
  return array;
}

RawArray read_idx(const std::string& path) {
  return parse_idx(read_maybe_gz(path), path);
}

}  // namespace holdfast
