// What the faithfulness measures share: features are removed in the order of their importance, and the model is asked again.
//
// Features are ranked by the folded map (magnitudes, channels summed, ties to the lower index); removing one removes all its
// channels. With remove=resample the columns of a one-hot group are one feature (removal.h); otherwise each column is one, as in
// the papers.
//
// A model's answer changes when anything is removed, so every number has the same one for features in random order beside it, the
// part `random`: the mean over `random` orders, drawn for each sample. A map that ranks nothing (all features alike, or not
// finite) is undefined.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/measure/measure.h"
#include "removal.h"
#include "units.h"

namespace holdfast::measure {

std::vector<OptionSpec> faithfulness_options(std::vector<OptionSpec> own = {});

// The model's answers with features removed, in one order: one entry for each count.
struct RemovalCurve {
  double clean = 0;                     // p_c(x), the probability of the explained class
  std::span<const std::int64_t> count;  // features at the top of the order, ascending
  std::span<const double> probability;  // p_c with these removed (or everything but these), the mean over the draws
  std::span<const double> flipped;      // share of the draws in which another class is predicted
  std::int64_t features = 0;

  double fraction(std::size_t i) const { return static_cast<double>(count[i]) / static_cast<double>(features); }
};

class Faithfulness : public Measure {
 public:
  enum class Remove { kTop, kAllButTop };
  Faithfulness(const Options& options, Remove which);

  void check(const MeasureTask& task) const override;
  Measurement run(const MeasureTask& task) const override;
  // Fractions of the features, probabilities and their differences.
  Range range() const override { return {0, 1}; }

 protected:
  // How many of `features` are at the top, ascending.
  virtual std::vector<std::int64_t> counts(const Layout& layout, std::int64_t features) const = 0;
  virtual double score(const RemovalCurve& curve) const = 0;
  // Further columns of the map's own curve (`random` false) and of the random ones: names, and one value for each.
  virtual std::vector<std::string> columns(std::span<const std::int64_t> counts) const;
  virtual std::vector<double> column_values(const RemovalCurve& curve) const;

 private:
  struct Answers;
  struct Orders;
  Answers ask(const MeasureTask& task, const Units& units, std::span<const std::int64_t> counts, const Explanation& clean) const;

  Removal removal_;
  Remove which_;
  std::int64_t random_;
};

// 1, 2, ..., features on tables; 1, 5, 10, 20 and 50 % of them, at least one, on images and graphs.
std::vector<std::int64_t> paper_counts(const Layout& layout, std::int64_t features);
// 0 (or 1) to all of them in `steps` equal steps; 0: one by one on tables, 100 on images and graphs.
std::vector<std::int64_t> equal_counts(const Layout& layout, std::int64_t features, std::int64_t steps, bool from_zero);
OptionSpec steps_option();

}  // namespace holdfast::measure
