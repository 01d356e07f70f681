// lens_precision_div: the share of the original's diverse top k that lies within w of the perturbed map's diverse top k.
//     |S & N_w(T)| / |S|          S, T: greedy diverse top k of the two maps (diverse.h)
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 4. The radius of diversity and that of
// locality are separate; the paper uses one for both. Divides by the number found in S.
#include "set_metric.h"

namespace holdfast::metric::lens_precision_div {

const MethodInfo kInfo{.name = "lens_precision_div",
                       .summary = "share of the original's diverse top k found within w of the perturbed map's",
                       .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
                       .options = {{"k", 100, at_least(1), "features compared, or as many as are found"},
                                   {"w", 1, at_least(0), "radius of the neighbourhood; what that is: docs/metrics.md"},
                                   {"diversity", 1, at_least(0), "radius within which only one feature is taken"}},
                       .notes = "The chance level is sampled."};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo, [](const Options& options) {
    return std::make_unique<SetMetric>(
        options.complete(),
        SetMetricOptions{.k = options.integer("k"), .w = options.integer("w"), .diversity = options.integer("diversity")});
  });
}

}  // namespace holdfast::metric::lens_precision_div
