// Numbers as people write them.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace holdfast {

// A finite number, or a quotient of two: 0.03, 8/255.
inline std::optional<double> parse_quotient(std::string_view text) {
  const auto number = [](std::string_view part) -> std::optional<double> {
    double value = 0;
    const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (status != std::errc() || end != part.data() + part.size() || !std::isfinite(value)) return std::nullopt;
    return value;
  };
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return number(text);
  const std::optional<double> above = number(text.substr(0, slash)), below = number(text.substr(slash + 1));
  if (!above || !below || !std::isfinite(*above / *below)) return std::nullopt;
  return *above / *below;
}

}  // namespace holdfast
