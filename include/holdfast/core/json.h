// JSON with keys in the order they were written, so that files made from the same values are the same bytes.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace holdfast {

using Json = nlohmann::ordered_json;

// Parses text; throws kInput naming `where` and the line.
Json parse_json(const std::string& text, const std::string& where);
Json read_json(const std::string& path);

// A number in JSON: null where it is not finite, and NaN where there is null.
inline Json number_json(double number) {
  return std::isfinite(number) ? Json(number) : Json();
}
inline double number_or_nan(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}
std::vector<double> numbers_or_nan(const Json& array);
// null where there is no number.
inline Json optional_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

// Two spaces of indentation, non-finite numbers as null, shortest text that reads back to the same double, and a final
// newline.
std::string dump_json(const Json& json);
void write_json(const std::string& path, const Json& json);  // atomic

}  // namespace holdfast
