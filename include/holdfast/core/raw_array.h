// An array as files hold it: element type, shape and bytes. What npy, safetensors and idx are read into and written
// from, without torch. `tensor.h` turns it into a tensor and back without copying where it can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast {

enum class ElementType {
  kBool,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64
};

std::size_t size_of(ElementType type);
std::string to_string(ElementType type);

struct RawArray {
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;  // row-major, this machine's byte order

  std::int64_t count() const;  // product of shape
};

// "[8, 3, 32, 32]"
std::string to_string(const std::vector<std::int64_t>& shape);

// The product of `shape`, times the element size, checked against overflow and against `available` bytes before
// anything is allocated. Throws kInput naming `where`.
std::size_t checked_bytes(const std::vector<std::int64_t>& shape, ElementType type, std::size_t available,
                          const std::string& where);

}  // namespace holdfast
