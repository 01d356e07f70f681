// The page's script (web/), carried inside the program so that a report needs no other file.
#pragma once

#include <string_view>

namespace holdfast::report {

std::string_view page_script();

}  // namespace holdfast::report
