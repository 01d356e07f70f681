// Every registry under the word that the command line uses for it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/method.h"

namespace holdfast::cli {

// {"explainers", {...}}, {"attacks", {...}}, ... in the order of `list`.
std::vector<std::pair<std::string, std::vector<const MethodInfo*>>> catalogue();
std::vector<std::string> catalogue_kinds();

Json to_json(const MethodInfo& info);

}  // namespace holdfast::cli
