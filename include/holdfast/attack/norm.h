#pragma once

#include <string>

#include "holdfast/core/stages.h"

namespace holdfast::attack {

enum class Norm { kL2, kLinf, kL1 };
Norm parse_norm(const std::string& text);  // "l2", "linf", "l1"; throws kUsage
std::string to_string(Norm norm);

}  // namespace holdfast::attack
