// junit.xml: one test case a gate, for build servers.
#pragma once

#include <string>

#include "holdfast/core/json.h"

namespace holdfast {

// From results.json (docs/run-folder.md).
std::string junit_xml(const Json& results);

}  // namespace holdfast
