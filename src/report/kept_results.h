// The kept results of a paper's experiments (results/r2et), for its pages.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"

namespace holdfast::report {

// Names of the experiments of a folder: tables first, then figures, then the rest. Throws kInput where there are none.
std::vector<std::string> kept_experiments(const std::string& folder);

// The last part of a path: "r2et" of "results/r2et/".
std::string folder_name(const std::string& folder);

// A table of an experiment with every digit: keys, then value, low, high, n and levels of each column.
std::string table_csv(const Json& table);

}  // namespace holdfast::report
