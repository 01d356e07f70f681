// What an audit would cost, by a trial.
#include <algorithm>
#include <chrono>

#include "../model_tiles.h"
#include "holdfast/core/clock.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/audit.h"

namespace holdfast::experiment {
namespace {

// The first samples pay for the whole of a batch, so the time is what the row takes at most. On a GPU few samples take as long as
// many, so a whole tile is tried.
RowCost try_cell(const Cell& cell, const TileOptions& tiles) {
  constexpr std::int64_t kTried = 2;
  const Model& model = *cell.subject.model;
  const std::int64_t count = cell.subject.samples.count();
  const std::int64_t tile = tile_size(tiles, cell.subject.samples.layout(), model);
  const std::int64_t tried = std::min(model.device().is_cpu() ? kTried : tile, count);
  Cell few = cell;
  few.subject.samples = cell.subject.samples.select(at::arange(tried));
  const auto start = std::chrono::steady_clock::now();
  const CellResult result = run_cell(*few.attack, few.task(), tiles);
  RowCost cost{.cell = cell,
               .seconds = seconds_since(start) * static_cast<double>(count) / static_cast<double>(tried),
               .tiles = (count + tile - 1) / tile};
  for (const SampleOutcome& sample : result.samples) cost.evaluations = std::max(cost.evaluations, sample.evaluations);
  return cost;
}

}  // namespace

double PlanCost::seconds() const {
  double sum = 0;
  for (const RowCost& row : rows) sum += row.seconds;
  return sum;
}

double PlanCost::seconds_on(std::int64_t workers) const {
  double sum = 0;
  for (const RowCost& row : rows)
    sum += row.seconds * static_cast<double>((row.tiles + workers - 1) / workers) / static_cast<double>(row.tiles);
  return sum;
}

PlanCost try_plan(const AuditPlan& plan) {
  PlanCost cost;
  for (const AuditModel& model : plan.models) {
    const AuditData& data = plan.data[model.data];
    for (const Cell& cell : make_cells({data.name, model.name, model.model, data.samples}, data.trial, plan.seed))
      cost.rows.push_back(try_cell(cell, plan.tiles));
  }
  return cost;
}

}  // namespace holdfast::experiment
