// Values of a metric straight from maps as they lie in memory: one pair is folded at a time, into memory that is used again, so
// that a large batch costs no more than its maps.
#pragma once

#include <span>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/metric/metric.h"

namespace holdfast::metric {

// One value for each sample. The maps lie row after row, schema.layout.inputs() values each, and are finite; the metric has been
// checked against the schema.
std::vector<double> compare_maps(const Metric& metric, const Schema& schema, std::span<const float> original,
                                 std::span<const float> perturbed);
std::vector<double> compare_maps(const Metric& metric, const Schema& schema, std::span<const double> original,
                                 std::span<const double> perturbed);

}  // namespace holdfast::metric
