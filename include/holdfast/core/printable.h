// Text that survives wherever it is shown: names may hold anything.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Where the first byte lies that is no UTF-8; the text's size when all of it is.
std::size_t first_invalid_utf8(std::string_view text);
// The text with U+FFFD in place of bytes that are no UTF-8.
std::string valid_utf8(std::string_view text);
// For terminals, tables and XML: control characters, line separators, marks that turn the direction of writing and codes that are
// no characters become U+FFFD too. Line feeds and tabs stay where `lines` is true.
std::string printable(std::string_view text, bool lines = false);

}  // namespace holdfast
