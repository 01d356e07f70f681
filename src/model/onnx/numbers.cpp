#include "numbers.h"

#include <cmath>
#include <cstring>

namespace holdfast::model::onnx {

bool is_floating(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16 || type == ElementType::kFloat32 ||
         type == ElementType::kFloat64;
}

std::optional<Integers> integers_in(const RawArray& array) {
  Integers result;
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const std::byte* at = array.bytes.data() + static_cast<std::size_t>(i) * size_of(array.type);
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (array.type == ElementType::kInt64) {
      std::memcpy(&wide, at, sizeof wide);
    } else if (array.type == ElementType::kInt32) {
      std::memcpy(&narrow, at, sizeof narrow);
      wide = narrow;
    } else {
      return std::nullopt;
    }
    result.push_back(wide);
  }
  return result;
}

std::optional<double> only_number(const RawArray& array) {
  if (array.count() != 1) return std::nullopt;
  if (array.type == ElementType::kFloat32) {
    float number = 0;
    std::memcpy(&number, array.bytes.data(), sizeof number);
    return number;
  }
  if (array.type == ElementType::kFloat64) {
    double number = 0;
    std::memcpy(&number, array.bytes.data(), sizeof number);
    return number;
  }
  const auto integers = integers_in(array);
  return integers ? std::optional(static_cast<double>((*integers)[0])) : std::nullopt;
}

bool all_finite_floats(const RawArray& array) {
  if (array.type != ElementType::kFloat32) return true;
  for (std::size_t i = 0; i < array.bytes.size(); i += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, array.bytes.data() + i, sizeof number);
    if (!std::isfinite(number)) return false;
  }
  return true;
}

}  // namespace holdfast::model::onnx
