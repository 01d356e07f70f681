// deletion and insertion: the area under the class's probability while features are removed, most important first, and while
// they are put back into a sample without any.
//     area = int_0^1 p_c(x with the fraction t removed, or with only the fraction t) dt          trapezoids over the steps
// Petsiuk, Das, Saenko, "RISE", BMVC 2018. Deletion: lower is better; insertion: higher. curve=true adds the curve itself:
// `p_5` is the probability at 5 features, `random_p_5` the same for features in random order.

#include <fmt/core.h>

#include "faithfulness.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure::deletion_insertion {

const char* const kRise = "Petsiuk, Das, Saenko, RISE: Randomized Input Sampling for Explanation of Black-box Models, BMVC 2018";

std::vector<OptionSpec> area_options() {
  return faithfulness_options({steps_option(), {"curve", false, anything(), "the curve's points as columns of their own"}});
}

const MethodInfo kDeletionInfo{.name = "deletion",
                               .summary = "area under the probability while the most important features are removed",
                               .citation = kRise,
                               .options = area_options()};

const MethodInfo kInsertionInfo{.name = "insertion",
                                .summary = "area under the probability while the most important features are put back",
                                .citation = kRise,
                                .options = area_options()};

class Area final : public Faithfulness {
 public:
  Area(const Options& options, Remove which)
      : Faithfulness(options, which),
        higher_is_better_(which == Remove::kAllButTop),
        steps_(options.integer("steps")),
        curve_(options.flag("curve")) {}

  bool higher_is_better() const override { return higher_is_better_; }

 protected:
  std::vector<std::int64_t> counts(const Layout& layout, std::int64_t features) const override {
    return equal_counts(layout, features, steps_, /*from_zero=*/true);
  }

  double score(const RemovalCurve& curve) const override {
    double area = 0;
    for (std::size_t i = 1; i < curve.count.size(); ++i)
      area += (curve.fraction(i) - curve.fraction(i - 1)) * (curve.probability[i] + curve.probability[i - 1]) / 2;
    return area;
  }

  std::vector<std::string> columns(std::span<const std::int64_t> counts) const override {
    std::vector<std::string> names;
    if (!curve_) return names;
    for (const std::int64_t count : counts) names.push_back(fmt::format("p_{}", count));
    return names;
  }

  std::vector<double> column_values(const RemovalCurve& curve) const override {
    if (!curve_) return {};
    return {curve.probability.begin(), curve.probability.end()};
  }

 private:
  bool higher_is_better_;
  std::int64_t steps_;
  bool curve_;
};

void add_to(Registry<Measure>& registry) {
  registry.add(kDeletionInfo, [](const Options& options) { return std::make_unique<Area>(options, Faithfulness::Remove::kTop); });
  registry.add(kInsertionInfo,
               [](const Options& options) { return std::make_unique<Area>(options, Faithfulness::Remove::kAllButTop); });
}

}  // namespace holdfast::measure::deletion_insertion
