// The aggregates of an audit: what results.json says of a model and of a row of the grid.
#pragma once

#include <string>

#include "audit_grid.h"
#include "holdfast/core/json.h"
#include "holdfast/metric/levels.h"

namespace holdfast {

// `logits`: of the model at the data's inputs.
Json model_json(const AuditModel& subject, const AuditData& data, const at::Tensor& logits);

// `arrays`: where the row's samples lie, relative to the run folder; `seed`: of the intervals.
Json row_json(const GridRow& row, const Assessment& assessment, const CellResult& result, const std::string& arrays,
              std::uint64_t seed);

// Rows with `beaten_by` where random points harmed more than the row's attack did: such a row says nothing about robustness.
Json flag_beaten(Json rows);

}  // namespace holdfast
