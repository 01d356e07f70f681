// A measure over many samples, cut into tiles that run side by side.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/communicator.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/stages.h"
#include "holdfast/experiment/explain_all.h"
#include "holdfast/measure/measure.h"
#include "holdfast/metric/levels.h"

namespace holdfast::experiment {

// The task's samples may lie on any device and may lack targets. Throws kUsage or kInput when the parts do not fit each other.
void check_measure(const Measure& measure, const MeasureTask& task);
// Says what should be known before the work starts, if anything.
void announce(const Measure& measure, const MeasureTask& task);
// The same bytes for any number of threads; equal up to rounding between tile sizes. The task must have been checked.
Measurement measure_all(const Measure& measure, const MeasureTask& task, const TileOptions& tiles, Progress* progress = nullptr);
// The same with the help of other ranks, which all call this with one `name` that no other work has. Rank 0 gets the measurement,
// the others an empty one.
Measurement measure_together(Communicator& ranks, const std::string& name, const Measure& measure, const MeasureTask& task,
                             const TileOptions& tiles, Progress* progress = nullptr);

// Over samples, by bootstrap; where all values are equal, within the measure's range (metric/levels.h).
Interval measured_interval(const Measure& measure, const Measurement& measured, std::uint64_t seed);

// {"name", "mean", "low", "high", "median", "count", "higher_is_better", "values", "parts": {"error": {"mean", "values"}}}:
// the interval above; undefined values are null and left out.
Json to_json(const Measure& measure, const Measurement& measured, std::uint64_t seed);

}  // namespace holdfast::experiment
