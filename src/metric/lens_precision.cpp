// lens_precision: the share of the original's top k that lies within w of the perturbed map's top k (w-LENS-prec@k).
//     |S & N_w(T)| / k          S, T: top k of the original and of the perturbed map
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 3.
// Differs from the authors' code: windows stop at the border instead of wrapping round it, and ties go to the lower index. w = 0
// is top_k. A random map scores high where windows are wide: see chance.
#include "set_metric.h"

namespace holdfast::metric::lens_precision {

const MethodInfo kInfo{.name = "lens_precision",
                       .summary = "share of the original's top k found within w of the perturbed map's top k",
                       .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
                       .options = {{"k", 100, at_least(1), "features compared"},
                                   {"w", 1, at_least(0), "radius of the neighbourhood; what that is: docs/metrics.md"}}};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo, [](const Options& options) {
    return std::make_unique<SetMetric>(options.complete(),
                                       SetMetricOptions{.k = options.integer("k"), .w = options.integer("w")});
  });
}

}  // namespace holdfast::metric::lens_precision
