// spearman: Spearman's rank correlation of the two maps over all features, equal values with their mean rank; as
// scipy.stats.spearmanr. Undefined where a map is constant. Chance is 0.
#include "methods.h"
#include "rank_metric.h"

namespace holdfast {
namespace {

const MethodInfo kSpearmanInfo{.name = "spearman",
                               .summary = "Spearman's rank correlation of the maps, -1 to 1",
                               .citation = "Spearman, The Proof and Measurement of Association between Two Things, 1904"};

class Spearman final : public RankMetric<SpearmanOriginal> {
 public:
  explicit Spearman(const Options& options) : RankMetric(options.canonical(), 0) {}
};

}  // namespace

void add_spearman(Registry<Metric>& registry) {
  registry.add<Spearman>(kSpearmanInfo);
}

}  // namespace holdfast
