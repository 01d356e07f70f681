// Random allowed points around clean ones.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/threat.h"

namespace holdfast::attack {

// Uniform in the ball of the free (not frozen) elements, or on its surface; then projected to the box:
//     l2     a Gaussian direction; radius epsilon * u^(1/n)
//     l1     exponential magnitudes with random signs, scaled to sum 1; the same radius
//     linf   each element uniform; on the surface: scaled until the largest is epsilon
// Where rows must be valid: random levels as far as the ball goes, the rest of it for the other elements (valid.h), rounded.
// Row b is drawn from stream (seed, "point", ids[b]). Several points of one sample need several seeds.
// With `switches`: around the clean row with random levels (draw_levels).
at::Tensor draw_points(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                       bool on_sphere);

// Displacements as draw_points() makes them before it projects: by loops over rows, or, for threats that allow it, by tensor
// operations on the device of `clean`, which agree to rounding. The second way is that of a GPU.
bool draws_in_batches(const ThreatModel& threat);
at::Tensor draw_moves(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                      bool on_sphere);
at::Tensor draw_moves_in_batches(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed,
                                 bool on_sphere);

// The clean rows, each with a random number of groups, 0 to as many as may switch, at a random other level. Without `switches`
// the clean rows themselves. Streams (seed, "levels", ids[b]).
at::Tensor draw_levels(const ThreatModel& threat, const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed);

// Each element -1 or 1, of the clean points' shape and type, from streams (seed, "signs", ids[b]).
at::Tensor draw_signs(const at::Tensor& clean, const at::Tensor& ids, std::uint64_t seed);

}  // namespace holdfast::attack
