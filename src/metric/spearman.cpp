// spearman: Spearman's rank correlation of the two maps over all features, equal values with their mean rank; as
// scipy.stats.spearmanr. Undefined where a map is constant. Chance is 0.
#include "rank_metric.h"

namespace holdfast::metric::spearman {

const MethodInfo kInfo{.name = "spearman",
                       .summary = "Spearman's rank correlation of the maps, -1 to 1",
                       .citation = "Spearman, The Proof and Measurement of Association between Two Things, 1904"};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo,
               [](const Options& options) { return std::make_unique<RankMetric<SpearmanOriginal>>(options.canonical(), 0); });
}

}  // namespace holdfast::metric::spearman
