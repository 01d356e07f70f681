// What a rule says of a claim, from numbers with intervals.
#pragma once

#include <string>

namespace holdfast {

enum class Judgement { kHolds, kHoldsInPart, kDoesNotHold, kNotDecided };
std::string to_string(Judgement judgement);  // "holds", "holds in part", "does not hold", "not decided"

}  // namespace holdfast
