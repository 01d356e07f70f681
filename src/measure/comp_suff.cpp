// comp and suff: how much the probability moves when the most important features are removed, and when only they are kept.
//     comp = mean over k of | p_c(x) - p_c(x without its top k) |          comprehensiveness: higher is better
//     suff = mean over k of | p_c(x) - p_c(only the top k of x) |          sufficiency: lower is better
// DeYoung et al., "ERASER", ACL 2020, with magnitudes as in Chen et al., NeurIPS 2024, table 3; k goes through 1..n on tables and
// through 1, 5, 10, 20 and 50 % of n, at least one feature, on images and graphs.

#include <cmath>

#include "faithfulness.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure::comp_suff {

const char* const kEraser = "DeYoung et al., ERASER: A Benchmark to Evaluate Rationalized NLP Models, ACL 2020";

const MethodInfo kCompInfo{.name = "comp",
                           .summary = "mean change of the probability when the most important features are removed",
                           .citation = kEraser,
                           .options = faithfulness_options()};

const MethodInfo kSuffInfo{.name = "suff",
                           .summary = "mean change of the probability when only the most important features are kept",
                           .citation = kEraser,
                           .options = faithfulness_options()};

class MeanChange final : public Faithfulness {
 public:
  MeanChange(const Options& options, Remove which) : Faithfulness(options, which), higher_is_better_(which == Remove::kTop) {}

  bool higher_is_better() const override { return higher_is_better_; }

 protected:
  std::vector<std::int64_t> counts(const Layout& layout, std::int64_t features) const override {
    return paper_counts(layout, features);
  }

  double score(const RemovalCurve& curve) const override {
    double sum = 0;
    for (const double probability : curve.probability) sum += std::abs(curve.clean - probability);
    return sum / static_cast<double>(curve.probability.size());
  }

 private:
  bool higher_is_better_;
};

void add_to(Registry<Measure>& registry) {
  registry.add(kCompInfo,
               [](const Options& options) { return std::make_unique<MeanChange>(options, Faithfulness::Remove::kTop); });
  registry.add(kSuffInfo,
               [](const Options& options) { return std::make_unique<MeanChange>(options, Faithfulness::Remove::kAllButTop); });
}

}  // namespace holdfast::measure::comp_suff
