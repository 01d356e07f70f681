// The aggregates of an audit: what results.json says of a model and of a row of the grid.
#pragma once

#include <optional>
#include <string>

#include "audit_grid.h"
#include "holdfast/core/json.h"
#include "holdfast/experiment/random_baseline.h"
#include "holdfast/metric/levels.h"

namespace holdfast {

// `logits`: of the model at the data's inputs.
Json model_json(const AuditModel& subject, const AuditData& data, const at::Tensor& logits);

// `random`: nothing beside random points themselves; `arrays`: where the row's samples lie, relative to the run folder; `seed`:
// of the intervals.
Json row_json(const GridRow& row, const Assessment& assessment, const CellResult& result,
              const std::optional<RandomBaseline>& random, const std::string& arrays, std::uint64_t seed);

// Rows with `beaten_by`, null or the random points that harmed more than the row's attack did, those run beside it or a row of
// the same subject and threat: such a row says nothing about robustness.
Json flag_beaten(Json rows);

}  // namespace holdfast
