#include "arrays.h"

#include <cstring>

#include <fmt/format.h>

#include "holdfast/core/error.h"

namespace holdfast::report {
namespace {

template <class Number>
std::vector<double> convert(const RawArray& array) {
  std::vector<double> values(static_cast<std::size_t>(array.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, array.bytes.data() + i * sizeof(Number), sizeof(Number));
    values[i] = static_cast<double>(number);
  }
  return values;
}

}  // namespace

std::vector<double> to_doubles(const RawArray& array, const std::string& where) {
  if (array.type == ElementType::kFloat32) return convert<float>(array);
  if (array.type == ElementType::kFloat64) return convert<double>(array);
  input_error("{}: has {} elements; float32 or float64 is expected", where, to_string(array.type));
}

RawArray slice_of(const RawArray& array, std::int64_t sample) {
  HOLDFAST_CHECK(!array.shape.empty() && sample >= 0 && sample < array.shape[0]);
  RawArray slice{.type = array.type, .shape = {array.shape.begin() + 1, array.shape.end()}, .bytes = {}};
  const std::size_t size = static_cast<std::size_t>(slice.count()) * size_of(array.type);
  const auto start = array.bytes.begin() + static_cast<std::ptrdiff_t>(size * static_cast<std::size_t>(sample));
  slice.bytes.assign(start, start + static_cast<std::ptrdiff_t>(size));
  return slice;
}

std::string value_text(const Schema& schema, std::int64_t feature, double value) {
  const auto at = static_cast<std::size_t>(feature);
  if (at < schema.features.size() && schema.features[at].original) {
    const Feature& known = schema.features[at];
    const double share = (value - known.low) / (known.high - known.low);
    value = known.original->first + share * (known.original->second - known.original->first);
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace holdfast::report
