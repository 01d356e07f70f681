// The verifier: checks an attack's result again, with code that it shares with no attack. Norms and margins are computed in
// double precision, logits by a double-precision copy of the model where one can be made.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/threat.h"
#include "holdfast/core/stages.h"
#include "holdfast/model/model.h"

namespace holdfast::attack {

// How far beyond epsilon, of its size, a perturbation may be; and beyond a bound of the box, of its size.
inline constexpr double kBallTolerance = 1e-6;
// The margin asked for in the recheck: half of kMargin is left to the rounding of float32 logits.
inline constexpr double kVerifiedMargin = 0.5e-4;

struct Verification {
  std::int64_t moved = 0;       // samples that differ from the clean input
  double largest_distance = 0;  // of all samples, in the threat's norm
  double smallest_margin = 0;   // logit margin over the moved samples; infinite when there are none
  double largest_change = 0;    // of the predicted class's probability, over the moved samples
  bool in_double = false;       // whether the logits were
};

// Every perturbed row must lie in ball and box, leave frozen elements bit for bit alone, be valid and non-negative where the
// threat model asks for it and, unless it is the clean row itself, be predicted as the clean row is (by `model` as it stands)
// with a margin of kVerifiedMargin, and within the threat model's tolerance of its probability. Anything else is a bug of the
// attack: throws kBug naming `attack`, the sample, what was found and what was allowed.
Verification verify(const Model& model, const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& perturbed,
                    const at::Tensor& sample_ids, const std::string& attack);

}  // namespace holdfast::attack
