// One step of projected descent, the same for every attack that follows a gradient.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/threat.h"

namespace holdfast::attack {

// threat.project(points - step * direction, clean), where the direction is the gradient scaled so that a step has length
// `step` in the threat's norm, whatever the gradient's size:
//     l2    g / ||g||_2          l1    g / ||g||_1          linf    sign(g)
// So steps of length s, T of them, stay within sT of the start by themselves. Frozen elements are taken out of the
// gradient first, and so are those that are not finite, as they may be at a kink. A sample whose gradient is zero stays
// where it is.
struct StepNotes {
  std::vector<char> projected;         // of each row: whether the step had left ball or box
  std::vector<char> broken;            // ... whether its gradient had elements that are not finite
  std::vector<char> without_gradient;  // ... and whether it had nothing to follow
};
at::Tensor descend(const ThreatModel& threat, const at::Tensor& points, const at::Tensor& gradient, const at::Tensor& clean,
                   double step, StepNotes& notes);

}  // namespace holdfast::attack
