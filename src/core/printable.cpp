#include "holdfast/core/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace holdfast {
namespace printed {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Character {
  std::size_t bytes = 0;  // 0: what comes first is no UTF-8
  std::uint32_t code = 0;
};

// The first character: the shortest form only, no halves of pairs, nothing beyond U+10FFFF.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {1, byte(0)};
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < size) return {};
  std::uint32_t code = byte(0) & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool half = code >= 0xd800 && code < 0xe000;
  return code < kLeast[size] || half || code > 0x10ffff ? Character{} : Character{size, code};
}

bool is_shown(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  if (code == 0x2028 || code == 0x2029 || code == 0xfeff) return false;  // separators of lines, byte order mark
  if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return false;  // direction
  return (code & 0xfffe) != 0xfffe;
}

template <class Keep>
std::string replaced(std::string_view text, const Keep& keep) {
  std::string result;
  while (!text.empty()) {
    const Character next = first_character(text);
    result += next.bytes > 0 && keep(next.code) ? text.substr(0, next.bytes) : kReplacement;
    text.remove_prefix(std::max<std::size_t>(1, next.bytes));
  }
  return result;
}

}  // namespace printed

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t place = 0;
  while (place < text.size()) {
    const std::size_t bytes = printed::first_character(text.substr(place)).bytes;
    if (bytes == 0) break;
    place += bytes;
  }
  return place;
}

std::string valid_utf8(std::string_view text) {
  return printed::replaced(text, [](std::uint32_t) { return true; });
}

std::string printable(std::string_view text, bool lines) {
  return printed::replaced(
      text, [&](std::uint32_t code) { return printed::is_shown(code) || (lines && (code == '\n' || code == '\t')); });
}

}  // namespace holdfast
