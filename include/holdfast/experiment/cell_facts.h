// What the outcomes of a cell's samples come to: for result.json, results.json and warnings.
#pragma once

#include <string>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/experiment/cell.h"

namespace holdfast::experiment {

// The components of an ensemble: name, share of the samples it won, evaluations a sample; empty for other attacks. Seconds are
// for files that need not have the same bytes every time.
Json components_json(const CellResult& result, bool with_seconds = false);

// How far an ensemble's values still moved in the last fifth of the work, mean over the samples that are defined; NaN where none
// is, and for other attacks.
double mean_late_gain(const CellResult& result);
// How far the worse one of its two independent restarts stayed behind, in the same way.
double mean_restart_gap(const CellResult& result);
// Whether the restarts agree: that gap is at most .005 of the metric's range; of the mean value, for metrics without an end.
bool has_converged(const CellResult& result, const Metric& metric);

// {"components", "late_gain", "restart_gap", "converged"}; numbers null where they are undefined, and then so is the last. Empty
// without components.
Json ensemble_json(const CellResult& result, const Metric& metric);

// {"samples", "share"}: samples that met points of another class on the way.
Json flips_json(const CellResult& result);

// {"samples", "not_finite"}: samples in which the attack never found a gradient to follow; those of them where it was not finite.
Json no_gradient_json(const CellResult& result);
// Such samples may look robust because nothing was followed.
void warn_of_no_gradient(const CellResult& result, const std::string& attack);

// What the verifier found (attack/verify.h).
Json to_json(const Verification& verified);

}  // namespace holdfast::experiment
