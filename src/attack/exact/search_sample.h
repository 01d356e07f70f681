// The search of cells for samples of an attack's task: what it needs of the task, and one sample's search.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "../ledger.h"
#include "cell_search.h"
#include "holdfast/attack/attack.h"

namespace holdfast::attack::exact {

// Why the cells of a task cannot be searched, as a sentence that says what would do; nothing when they can.
std::optional<std::string> why_not(const AttackTask& task);

// Searches the ball around one sample, from the ledger's best point on. Points are judged by the ledger as part of the present
// iteration; what is proven is noted there. `clean` is the folded map at the sample.
void search_sample(const AttackTask& task, const Chain& chain, const CellLimits& limits, const MapView& clean,
                   std::int64_t sample, Ledger& ledger);

}  // namespace holdfast::attack::exact
