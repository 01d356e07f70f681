#pragma once

#include <string>

#include "holdfast/attack/attack.h"

namespace holdfast::attack {

// What every attack needs of its task; throws kUsage or kInput, before any work.
void check_task(const AttackTask& task);

// What attacks by gradient need beside it: an explainer and a model that can be differentiated twice. `attack` is for the
// message.
void check_differentiable(const AttackTask& task, const std::string& attack);

// The size of the top that an attack is after: its own option, or the metric's k where that is 0. Throws kUsage when the metric
// has none, or when the map has fewer features.
std::int64_t top_count(const AttackTask& task, std::int64_t option, const std::string& attack, const char* option_name = "k");

}  // namespace holdfast::attack
