// top_k_div: the share of the original's diverse top k that is in the perturbed map's diverse top k.
//     |S & T| / |S|          S, T: greedy diverse top k of the two maps (diverse.h)
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 4. Where a map has no k features that far
// apart, S is what was found, and its size is reported. On maps that are zero in most places ties decide: see tied_share.
#include "set_metric.h"

namespace holdfast::metric::top_k_div {

const MethodInfo kInfo{.name = "top_k_div",
                       .summary = "share of the original's diverse top k that is in the perturbed map's",
                       .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
                       .options = {{"k", 100, at_least(1), "features compared, or as many as are found"},
                                   {"diversity", 1, at_least(0), "radius within which only one feature is taken"}},
                       .notes = "The chance level is sampled."};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo, [](const Options& options) {
    return std::make_unique<SetMetric>(options.complete(),
                                       SetMetricOptions{.k = options.integer("k"), .diversity = options.integer("diversity")});
  });
}

}  // namespace holdfast::metric::top_k_div
