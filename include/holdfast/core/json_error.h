// For JSON that is sound and holds something else than it should.
#pragma once

#include <string>

#include "holdfast/core/json.h"

namespace holdfast {

// One sentence that names the file that was read last; empty when none was read.
std::string wrong_json_sentence(const Json::exception& error);

}  // namespace holdfast
