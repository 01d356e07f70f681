#include "holdfast/core/judgement.h"

namespace holdfast {

std::string to_string(Judgement judgement) {
  switch (judgement) {
    case Judgement::kHolds:
      return "holds";
    case Judgement::kHoldsInPart:
      return "holds in part";
    case Judgement::kDoesNotHold:
      return "does not hold";
    case Judgement::kNotDecided:
      return "not decided";
  }
  return "";
}

}  // namespace holdfast
