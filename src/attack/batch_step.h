// Steps and projections of a whole batch as tensor operations, on the device that the batch is on. They do what rows.h does in
// plain loops, without a wait for the device: rows.h is the reference, and on the CPU the faster of the two.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/attack/threat.h"

namespace holdfast::attack {

// Whether a threat's projection can be written as tensor operations. Categories that switch cannot.
bool projects_in_batches(const ThreatModel& threat);

// ThreatModel::project. A row that has to be pulled into an l1 or l2 ball ends so far inside that rounding cannot put it outside.
at::Tensor project_batch(const ThreatModel& threat, const at::Tensor& candidate, const at::Tensor& clean);

// What happened to each row of a step, as bits of one number.
enum StepFlag : int { kProjected = 1, kBroken = 2, kWithoutGradient = 4 };

struct BatchStep {
  at::Tensor next;   // [rows, sample...]
  at::Tensor flags;  // [rows], double: sums of StepFlag
};
// descend() of descend.h.
BatchStep descend_batch(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& gradient, const at::Tensor& clean,
                        double step);

}  // namespace holdfast::attack
