// null where there is no number.
#pragma once

#include <optional>

#include "holdfast/core/json.h"

namespace holdfast {

inline Json optional_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

}  // namespace holdfast
