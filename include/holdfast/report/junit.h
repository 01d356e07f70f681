// junit.xml: one test case a gate, for build servers.
#pragma once

#include <string>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::report {

// A row that missed its gate, in words: "plain MLP, saliency, er: 0.4120".
std::string missed_row(const Json& results, const Json& gate, const Json& gate_row);

// From results.json (docs/run-folder.md).
std::string junit_xml(const Json& results);

}  // namespace holdfast::report
