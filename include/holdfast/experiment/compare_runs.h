// Finished audits held against each other on the same samples: what got better, what got worse, which settings differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::experiment {

// Holds every run against the first:
//     {"runs": [title or folder], "unmatched": [sentence, one a run], "settings": [{"key", "values"}],
//      "rows": [{"run", "row" or "measure", "dataset", "model", "explainer", "attack", "metric", "epsilon" or "measure" name,
//                "direction", "first", "second", "difference": {...}, "p_value", "corrected", "change"}]}
// "difference" is this run's mean minus the first's over the samples that both have; "change" is better or worse where its 95 %
// interval excludes 0, same where no sample differs, else open. p-values are corrected over all rows (Holm). Where both runs have
// one model each, it may be called differently: a new version of a model is compared with the old one. So may the only dataset.
// Resamples are keyed by `seed`, or by each run's own. Throws kInput for a folder that holds no complete audit.
Json compare_runs(const std::vector<std::string>& folders, std::optional<std::uint64_t> seed = std::nullopt);

// How much worse than in the run `reference` each row of the run became: the rows of compare_runs({reference, folder}), each with
// "drop": positive where explanations hold less well.
Json drops_against(const std::string& reference, const std::string& folder);

}  // namespace holdfast::experiment
