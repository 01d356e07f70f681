// Distances of top sets that forgive small shifts.
//     d_k^(w)(a, b) = |S \ N_w(T)| / k + |T \ N_w(S)| / k          S, T: top k of the maps; 0 to 2
//     d(a, b) = sum_k alpha_k sum_w beta_w d_k^(w)(a, b)
//     u(a, b) = sum_k alpha_k sum_w beta_w |S sym-diff T| / k
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 3. d <= u (their Proposition 2). u is a
// pseudometric: it is 0 for different maps that rank alike; d breaks the triangle inequality ([3,1,3], [0,2,2], [0,0,4] with k =
// 1, w = 1).
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/metric/metric.h"

namespace holdfast::metric {

// One of the sizes k, or of the radii w, and its weight, >= 0.
struct Weighted {
  std::int64_t size;
  double weight;
};

struct LensWeights {
  std::vector<Weighted> k;  // 1 <= k <= features
  std::vector<Weighted> w;  // w >= 0
};

double lens_distance(const MapView& a, const MapView& b, const LensWeights& weights);  // d
double top_distance(const MapView& a, const MapView& b, const LensWeights& weights);   // u

}  // namespace holdfast::metric
