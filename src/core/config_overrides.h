// Reading TOML text, and laying `section.key=value` over it.
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace holdfast {

// Throws kUsage naming `where` and the line.
toml::table parse_toml(std::string_view text, const std::string& where);

// Throws kUsage naming the override when it is not `key=value` or goes through something that is no table.
void apply_override(toml::table& document, const std::string& text);

}  // namespace holdfast
