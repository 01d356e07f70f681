#include "holdfast/core/raw_array.h"

#include <algorithm>

#include <fmt/format.h>

#include "holdfast/core/error.h"

namespace holdfast {
namespace {

// No tensor has more axes than this; a header that claims more is damaged.
constexpr std::size_t kMostAxes = 64;

}  // namespace

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kUint16:
    case ElementType::kInt16:
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kUint32:
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kUint64:
    case ElementType::kInt64:
    case ElementType::kFloat64:
      return 8;
  }
  HOLDFAST_CHECK(false);
  return 0;
}

std::string to_string(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return "bool";
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kUint16:
      return "uint16";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kUint32:
      return "uint32";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kUint64:
      return "uint64";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBfloat16:
      return "bfloat16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
  }
  HOLDFAST_CHECK(false);
  return "";
}

std::int64_t RawArray::count() const {
  // An axis of 0 is looked for first: the product of the others may not fit.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string to_string(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::size_t checked_bytes(const std::vector<std::int64_t>& shape, ElementType type, std::size_t available,
                          const std::string& where) {
  if (shape.size() > kMostAxes)
    input_error("{}: the header claims {} axes; at most {} are possible", where, shape.size(), kMostAxes);
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) input_error("{}: the header claims the shape {}, which has a negative size", where, to_string(shape));
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, size, &bytes)) {
      input_error("{}: the header claims {} elements of shape {}, more than any file holds", where, to_string(type),
                  to_string(shape));
    }
  }
  if (empty) return 0;
  if (static_cast<std::size_t>(bytes) > available) {
    input_error("{}: the header claims {} elements of shape {}, {} bytes, but {} bytes follow it", where, to_string(type),
                to_string(shape), bytes, available);
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace holdfast
