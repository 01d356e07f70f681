// lens_spearman: Spearman's rank correlation of the two maps smoothed over windows (w-LENS-Spearman).
//     rho(M a, M b)      (M a)_i = sum of a over the window of i / size of the largest window
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 3; smoothing as in lens_kendall.
#include "rank_metric.h"

namespace holdfast::metric::lens_spearman {

const MethodInfo kInfo{
    .name = "lens_spearman",
    .summary = "Spearman's rank correlation of the maps smoothed over windows of radius w",
    .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
    .options = {{"w", 1, at_least(0), "radius of the neighbourhood; what that is: docs/metrics.md"}},
    .notes = "The chance level is sampled where w > 0: it is not 0 where windows differ in size, as at a border."};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo, [](const Options& options) {
    return std::make_unique<RankMetric<SpearmanOriginal>>(options.complete(), options.integer("w"));
  });
}

}  // namespace holdfast::metric::lens_spearman
