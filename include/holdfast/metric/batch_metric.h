// Metrics that compare many pairs of maps in one call: those of another language, where a call costs more than a comparison. All
// that holds many pairs at once (levels, assessments, attacks, `compare_maps`) asks for it by dynamic_cast.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/metric/levels.h"
#include "holdfast/metric/metric.h"

namespace holdfast::metric {

class BatchMetric : public Metric {
 public:
  struct Facts {
    Direction direction = Direction::kHigherIsMoreAlike;
    double perfect = 1, floor = 0;
    std::optional<std::int64_t> top_count = {};
  };
  BatchMetric(std::string name, Facts facts) : Metric(std::move(name)), facts_(facts) {}

  // Folded maps, row after row, schema.layout.features() values each; one value for each row, NaN where undefined.
  virtual std::vector<double> compare_rows(std::span<const double> original, std::span<const double> perturbed,
                                           const Schema& schema) const = 0;

  void check(const Schema& schema) const override;
  double compare(const MapView& original, const MapView& perturbed) const final;
  // Sampled; one call for each map.
  std::optional<double> chance(const MapView& original) const override;
  bool chance_is_exact() const override { return false; }
  Direction direction() const override { return facts_.direction; }
  double perfect() const override { return facts_.perfect; }
  double floor() const override { return facts_.floor; }
  std::optional<std::int64_t> top_count() const override { return facts_.top_count; }
  std::vector<std::int64_t> top_set(const MapView& map) const override;

 private:
  Facts facts_;
};

// The metric of every row of two batches that belong together.
std::vector<double> compare_batches(const Metric& metric, const MapBatch& original, const MapBatch& perturbed);
// Rows of a batch, one after the other in one piece of memory.
std::vector<double> gathered_rows(const MapBatch& maps, std::span<const std::int64_t> rows);

}  // namespace holdfast::metric
