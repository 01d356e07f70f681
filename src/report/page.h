// The page's script (web/) and the file that carries it: data, script and a content security policy that allows nothing else.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/core/json.h"

namespace holdfast::report {

std::string_view page_script();

std::string base64(std::span<const std::byte> data);

// Writes one HTML file that opens offline. `payload` is what web/src/data.ts describes; its "title" is the page's.
void write_page(const std::string& path, const Json& payload);

}  // namespace holdfast::report
