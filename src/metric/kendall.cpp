// kendall: Kendall's tau-b of the two maps over all features, ties accounted for; as scipy.stats.kendalltau.
//     (C - D) / sqrt((P - X)(P - Y))      P pairs; C concordant, D discordant; X, Y tied in the one map
// O(n log n) with the original sorted once (rank_correlation.h). Undefined where a map is constant. Chance is 0.
#include "methods.h"
#include "rank_metric.h"

namespace holdfast {
namespace {

const MethodInfo kKendallInfo{
    .name = "kendall",
    .summary = "Kendall's rank correlation of the maps (tau-b), -1 to 1",
    .citation = "Knight, A Computer Method for Calculating Kendall's Tau with Ungrouped Data, JASA 1966"};

class Kendall final : public RankMetric<KendallOriginal> {
 public:
  explicit Kendall(const Options& options) : RankMetric(options.canonical(), 0) {}
};

}  // namespace

void add_kendall(Registry<Metric>& registry) {
  registry.add<Kendall>(kKendallInfo);
}

}  // namespace holdfast
