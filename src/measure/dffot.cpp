// dffot: decision flip, fraction of tokens: the smallest fraction of the most important features whose removal changes the
// prediction; 1 when no removal does.
//     min { k / n : argmax f(x without its top k) != argmax f(x) }
// Serrano, Smith, "Is Attention Interpretable?", ACL 2019; Chen et al., NeurIPS 2024, table 3. `flipped` says whether the
// prediction changed at all. On images and graphs k goes in `steps` equal steps. With remove=resample the prediction counts as
// changed when it is in at least half of the draws.

#include "faithfulness.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure::dffot {

const MethodInfo kInfo{.name = "dffot",
                       .summary = "smallest fraction of the most important features whose removal flips the prediction",
                       .citation = "Serrano, Smith, Is Attention Interpretable?, ACL 2019",
                       .options = faithfulness_options({steps_option()})};

class Dffot final : public Faithfulness {
 public:
  explicit Dffot(const Options& options) : Faithfulness(options, Remove::kTop), steps_(options.integer("steps")) {}

  bool higher_is_better() const override { return false; }

 protected:
  std::vector<std::int64_t> counts(const Layout& layout, std::int64_t features) const override {
    return equal_counts(layout, features, steps_, /*from_zero=*/false);
  }

  double score(const RemovalCurve& curve) const override {
    const std::size_t first = first_flip(curve);
    return first < curve.count.size() ? curve.fraction(first) : 1;
  }

  std::vector<std::string> columns(std::span<const std::int64_t>) const override { return {"flipped"}; }
  std::vector<double> column_values(const RemovalCurve& curve) const override {
    return {first_flip(curve) < curve.count.size() ? 1.0 : 0.0};
  }

 private:
  static std::size_t first_flip(const RemovalCurve& curve) {
    std::size_t i = 0;
    while (i < curve.count.size() && curve.flipped[i] < 0.5) ++i;
    return i;
  }

  std::int64_t steps_;
};

void add_to(Registry<Measure>& registry) {
  registry.add<Dffot>(kInfo);
}

}  // namespace holdfast::measure::dffot
