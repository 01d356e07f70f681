// What an audit says of several models on the same samples, and of measures beside attacks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/json.h"

namespace holdfast {

// The values of one row of results.json, of its "rows" or of its "measures".
struct RowValues {
  Json row;                                   // the row itself
  std::vector<double> values;                 // one a sample
  std::vector<std::int64_t> first_swap = {};  // of rows with an attack; -1: never
};

// Every two models with the same samples, explainer, attack and metric (or measure): their paired comparison (statistics.h),
// p-values corrected over all comparisons of the run.
Json comparisons_json(const std::vector<RowValues>& rows, const std::vector<RowValues>& measures, std::uint64_t seed);

// Every attack's iterations to the first swap against every measure of the same model: rank correlations. Samples that never
// swapped count as later than all that did (statistics.h).
Json correlations_json(const std::vector<RowValues>& rows, const std::vector<RowValues>& measures, std::uint64_t seed);

}  // namespace holdfast
