// For JSON that is sound and holds something else than it should.
#pragma once

#include <string>

#include "holdfast/core/json.h"

namespace holdfast {

// "key 'rows' not found": what it says, without the name of its type.
std::string json_reason(const Json::exception& error);

// One sentence that names the file that was read last; empty when none was read.
std::string wrong_json_sentence(const Json::exception& error);

}  // namespace holdfast
