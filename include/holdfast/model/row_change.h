// What one row differs in from another, in one column. Included by files that are compiled for one instruction set: no more
// headers here.
#pragma once

#include <cstdint>

namespace holdfast::model::chain {

struct Change {
  std::int64_t column;
  float by;
};

}  // namespace holdfast::model::chain
