// kendall: Kendall's tau-b of the two maps over all features, ties accounted for; as scipy.stats.kendalltau.
//     (C - D) / sqrt((P - X)(P - Y))      P pairs; C concordant, D discordant; X, Y tied in the one map
// O(n log n) with the original sorted once (rank_correlation.h). Undefined where a map is constant. Chance is 0.
#include "rank_metric.h"

namespace holdfast::metric::kendall {

const MethodInfo kInfo{.name = "kendall",
                       .summary = "Kendall's rank correlation of the maps (tau-b), -1 to 1",
                       .citation = "Knight, A Computer Method for Calculating Kendall's Tau with Ungrouped Data, JASA 1966"};

void add_to(Registry<Metric>& registry) {
  registry.add(kInfo,
               [](const Options& options) { return std::make_unique<RankMetric<KendallOriginal>>(options.canonical(), 0); });
}

}  // namespace holdfast::metric::kendall
