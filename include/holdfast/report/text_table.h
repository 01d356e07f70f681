// Tables for the terminal.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/json.h"

namespace holdfast {

// "0.7100"; what rounds to zero has no sign.
std::string fixed(double value, int digits);

// Columns padded to their widest cell (in characters, not bytes); columns of numbers are aligned to the right.
std::string text_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

// results.json as the tables that `audit` prints: values with interval, chance, between, adjusted, specific; measures; models
// compared; then the gates.
std::string results_table(const Json& results);

}  // namespace holdfast
