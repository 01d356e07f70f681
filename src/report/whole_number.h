// Counts and places in files that somebody may have edited.
#pragma once

#include <cstdint>

#include "holdfast/core/error.h"
#include "holdfast/core/json.h"

namespace holdfast::report {

// A number with a fraction or an exponent may lie outside of what an integer holds.
inline std::int64_t whole_number(const Json& value) {
  if (!value.is_number_integer()) input_error("{} stands where a whole number belongs", value.dump());
  return value.get<std::int64_t>();
}

}  // namespace holdfast::report
