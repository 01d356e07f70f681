// Measures of an audit: each model around its samples, beside the attacks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/measure_all.h"

namespace holdfast {

struct MeasureRow {
  const AuditModel& subject;
  const AuditData& data;
  std::unique_ptr<Explainer> explainer;
  std::unique_ptr<Measure> measure;

  MeasureJob job(std::uint64_t seed) const;
  // "-" for measures that do not read it.
  std::string explainer_name() const { return measure->uses_explainer() ? explainer->name() : "-"; }
};

// Models x explainers x measures, in the order of the tables; a measure that does not read the explainer makes one row a model.
// Everything is made and checked before any work. Rows refer to the plan.
std::vector<MeasureRow> make_measure_rows(const AuditPlan& plan);

// What is stored in `folder` is not computed again.
Measurement run_measure_row(const MeasureRow& row, const AuditPlan& plan, const std::string& folder, Progress* progress);

// A row of results.json's "measures".
Json measure_row_json(const MeasureRow& row, const Measurement& measured, std::uint64_t seed);

// measures.csv: one line a sample and column; `part` is empty for the measure itself.
std::string measures_header();
std::string measure_lines(const MeasureRow& row, const Measurement& measured);

}  // namespace holdfast
