// What makes a row of a table valid: in every one-hot group exactly one column is 1 and the others are 0; every other
// element lies in its range, on its grid where it has one. An element or group that is left as the clean row has it is valid too.
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::attack {

struct ValidRows {
  std::vector<std::vector<std::int64_t>> groups;  // columns of each one-hot group
  std::vector<double> low, high;                  // range of each element
  std::vector<double> step;                       // values are low + a multiple of it; 0: any value
};

}  // namespace holdfast::attack
