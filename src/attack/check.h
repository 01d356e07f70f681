#pragma once

#include <string>

#include "holdfast/attack/attack.h"

namespace holdfast {

// What every attack needs of its task; throws kUsage or kInput, before any work.
void check_task(const AttackTask& task);

// What attacks by gradient need beside it: an explainer and a model that can be differentiated twice. `attack` is for the
// message.
void check_differentiable(const AttackTask& task, const std::string& attack);

}  // namespace holdfast
