// The grid of an audit: what each row of results.json is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "holdfast/experiment/audit.h"

namespace holdfast {

struct GridRow {
  const AuditModel& subject;
  const AuditData& data;
  std::unique_ptr<Explainer> explainer;
  std::unique_ptr<Attack> attack;
  std::unique_ptr<Metric> metric;
  ThreatModel threat;
  // Whether the row before it has the next smaller epsilon: what that found is where this one starts.
  bool goes_on = false;

  CellTask task(std::uint64_t seed, const at::Tensor& start = {}) const;
};

// In the order of the tables; a method that is named twice makes one row. Everything is made and checked before the first
// attack runs. Rows refer to the plan.
std::vector<GridRow> make_grid(const AuditPlan& plan);

}  // namespace holdfast
