// lens_kendall: Kendall's tau-b of the two maps smoothed over windows (w-LENS-Kendall).
//     tau-b(M a, M b)      (M a)_i = sum of a over the window of i / size of the largest window
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 3. On grids the divisor is (2w+1)^2 also at
// the border (zero padding), which makes smoothing a contraction (their Proposition 3). Sums are direct: rounding dust of a
// running sum would be ranked where maps are zero.
#include "rank_metric.h"

namespace holdfast::metric::lens_kendall {

const MethodInfo kInfo{
    .name = "lens_kendall",
    .summary = "Kendall's rank correlation (tau-b) of the maps smoothed over windows of radius w",
    .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
    .options = {{"w", 1, at_least(0), "radius of the neighbourhood; what that is: docs/metrics.md"}},
    .notes = "The chance level is sampled where w > 0: it is not 0 where windows differ in size, as at a border."};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo, [](const Options& options) {
    return std::make_unique<RankMetric<KendallOriginal>>(options.complete(), options.integer("w"));
  });
}

}  // namespace holdfast::metric::lens_kendall
