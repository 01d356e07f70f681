// lens_recall: the share of the perturbed map's top k that lies within w of the original's top k (w-LENS-recall@k).
//     |N_w(S) & T| / k          S, T: top k of the original and of the perturbed map
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 3. lens_precision with the maps exchanged.
#include "set_metric.h"

namespace holdfast::metric::lens_recall {

const MethodInfo kInfo{.name = "lens_recall",
                       .summary = "share of the perturbed map's top k found within w of the original's top k",
                       .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
                       .options = {{"k", 100, at_least(1), "features compared"},
                                   {"w", 1, at_least(0), "radius of the neighbourhood; what that is: docs/metrics.md"}}};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo, [](const Options& options) {
    return std::make_unique<SetMetric>(
        options.complete(), SetMetricOptions{.k = options.integer("k"), .w = options.integer("w"), .share = ShareOf::kPerturbed});
  });
}

}  // namespace holdfast::metric::lens_recall
