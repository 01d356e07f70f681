// What an attacker may do to an input: stay within epsilon of it in a norm, inside the box, leave frozen features alone
// and (tables, when asked) keep the row valid.
#pragma once

#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/norm.h"
#include "holdfast/core/json.h"
#include "holdfast/data/schema.h"

namespace holdfast {

struct ThreatModel {
  Norm norm = Norm::kL2;
  double epsilon = 1.0;                          // in the units of the inputs, > 0 or = 0
  std::optional<std::pair<double, double>> box;  // every element; unset: no limit but the ball
  // Elements that must not move: [sample...] bool, undefined when there are none.
  at::Tensor frozen;

  // Frozen features come from the schema; a box is only what was asked for. Throws kUsage for a bad epsilon or box.
  static ThreatModel make(Norm norm, double epsilon, std::optional<std::pair<double, double>> box, const Schema& schema);

  // The nearest allowed point, for l2 and linf exactly; box and ball together by clipping then shrinking towards the
  // clean point, which keeps both. `clean` must itself be inside the box (checked where inputs are read).
  at::Tensor project(const at::Tensor& candidate, const at::Tensor& clean) const;
  // Size of candidate - clean in the norm, [B] double.
  at::Tensor distance(const at::Tensor& candidate, const at::Tensor& clean) const;
};

Json to_json(const ThreatModel& threat);

}  // namespace holdfast
