// What an audit writes of the rows of its grid: results.json, samples.csv, measures.csv and arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/experiment/audit.h"

namespace holdfast::experiment {

// What is kept of a row once its files are written: its names, and what other rows are held against.
struct RowSummary {
  std::string dataset, model, explainer, attack, metric;
  ThreatModel threat;
  Direction direction = Direction::kHigherIsMoreAlike;
  double mean = 0;
  std::optional<RandomPoints> random;
  std::vector<double> values;            // one a sample
  std::vector<std::int64_t> first_swap;  // -1: never
};
RowSummary summarise(const Row& row);

// A measure after it was run.
struct MeasureRow {
  MeasureCell cell;
  Measurement measured;
};

// An entry of "models". `logits`: of the model at the samples.
Json model_json(const AuditModel& model, const AuditData& data, const at::Tensor& logits);
// An entry of "rows"; `arrays`: where the row's samples lie, relative to the run folder.
Json row_json(const Row& row, const std::string& arrays);
// For each row, null or the random points that harmed more than its attack did: those run beside it, or a row of the same subject
// and threat. Such a row says nothing about robustness.
std::vector<std::optional<std::string>> beaten_by(const std::vector<RowSummary>& rows);
// An entry of "measures".
Json measure_row_json(const MeasureRow& row);

// Every two models with the same samples, explainer, attack and metric (or measure): their paired comparison (statistics.h),
// p-values corrected over all comparisons of the run.
Json comparisons_json(const std::vector<RowSummary>& rows, const std::vector<MeasureRow>& measures, std::uint64_t seed);
// Every attack's iterations to the first swap against every measure of the same model: rank correlations. Samples that never
// swapped count as later than all that did (statistics.h).
Json correlations_json(const std::vector<RowSummary>& rows, const std::vector<MeasureRow>& measures, std::uint64_t seed);

// samples.csv: one line a sample of a row.
std::string samples_header();
std::string sample_lines(const Row& row);
// Inputs and maps of the `count` worst samples, worst first, and samples.json that describes them.
void write_arrays(const std::string& folder, const Row& row, std::int64_t count);

// measures.csv: one line a sample and column; `part` is empty for the measure itself.
std::string measures_header();
std::string measure_lines(const MeasureRow& row);
// What is stored in `folder` is not computed again. With `ranks`, all of them compute; rank 0 has the row and stores it.
MeasureRow run_measure(const MeasureCell& cell, const TileOptions& tiles, const std::string& folder, Progress* progress,
                       Communicator* ranks = nullptr);

}  // namespace holdfast::experiment
