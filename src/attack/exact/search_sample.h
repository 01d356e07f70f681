// The search of cells for samples of an attack's task: what it needs of the task, and one sample's search.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "../ledger.h"
#include "cell_search.h"
#include "holdfast/attack/attack.h"

namespace holdfast::attack::exact {

// Why the cells of a task cannot be searched, as a sentence that says what would do; nothing when they can.
std::optional<std::string> why_not(const AttackTask& task);

// Whether the task's metric is of the order of all features: then a part of the ball has many more pairs to bound.
bool is_of_order(const AttackTask& task);

// Searches the balls around all samples, from the ledger's best points on. Points are judged by the ledger as part of one
// iteration; what is proven is noted there. `work_after` says what the tile will take afterwards, for progress.
void search_samples(const AttackTask& task, const CellLimits& limits, const Explanation& clean, Ledger& ledger,
                    const std::function<double()>& work_after = {});

}  // namespace holdfast::attack::exact
