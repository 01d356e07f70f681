#include "holdfast/attack/norm.h"

#include "holdfast/core/method.h"

namespace holdfast::attack {

Norm parse_norm(const std::string& text) {
  if (text == "l2") return Norm::kL2;
  if (text == "linf") return Norm::kLinf;
  if (text == "l1") return Norm::kL1;
  usage_error("unknown norm '{}'{}", text, suggestion(text, {"l2", "linf", "l1"}));
}

std::string to_string(Norm norm) {
  switch (norm) {
    case Norm::kL2:
      return "l2";
    case Norm::kLinf:
      return "linf";
    case Norm::kL1:
      return "l1";
  }
  return {};
}

}  // namespace holdfast::attack
