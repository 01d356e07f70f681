// lens_recall: the share of the perturbed map's top k that lies within w of the original's top k (w-LENS-recall@k).
//     |N_w(S) & T| / k          S, T: top k of the original and of the perturbed map
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, section 3. lens_precision with the maps exchanged.
#include "methods.h"
#include "set_metric.h"

namespace holdfast {
namespace {

const MethodInfo kLensRecallInfo{
    .name = "lens_recall",
    .summary = "share of the perturbed map's top k found within w of the original's top k",
    .citation = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024",
    .options = {{"k", 100, at_least(1), "features compared"},
                {"w", 1, at_least(0), "radius of the neighbourhood; what that is: docs/metrics.md"}}};

class LensRecall final : public SetMetric {
 public:
  explicit LensRecall(const Options& options)
      : SetMetric(options.complete(), {.k = options.integer("k"), .w = options.integer("w"), .share = ShareOf::kPerturbed}) {}
};

}  // namespace

void add_lens_recall(Registry<Metric>& registry) {
  registry.add<LensRecall>(kLensRecallInfo);
}

}  // namespace holdfast
