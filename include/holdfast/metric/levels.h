// A similarity alone misleads. Every one is shown with
//     chance    what a random map scores                          adjusted = (v - chance) / (1 - chance)
//     between   what clean maps of different samples score         specific = (v - between) / (1 - between)
// A model whose explanation is the same for every input is trivially robust: its between level is 1 and `specific` is
// undefined. Adjusted and specific are means over samples. For distances, where less is more alike, 1 stands for the value
// of identical maps: (v - level) / (perfect - level), so that 1 is always best and 0 the level.
//
// `specific` divides by (1 - between), which rewards maps that are nearly the same for every input. So it is never shown without
//     lift             value - between
//     effective sets   exp(- sum of p ln p), p the share of the samples with one top-k set; all samples whose set does not hold
//                      under the attack count as one set together. 1: all samples have one set. Vectors and tables alone
//     own advantage    (E_own - E_other) / E_own. E = mean |p(x) - p(x with the features of a top-k set taken from rows of the
//                      data)|: of the sample's own attacked map, and of that of another sample of the same predicted class
// A row is *robust and specific* where surely, with the whole interval, lift >= 0.2, effective sets >= 3 and own advantage > 0.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/judgement.h"
#include "holdfast/core/memory.h"
#include "holdfast/core/stages.h"
#include "holdfast/metric/metric.h"

namespace holdfast::metric {

struct Interval {
  double mean = 0, low = 0, high = 0;                        // 95 %
  std::int64_t count = 0;                                    // values that were defined
  double median = std::numeric_limits<double>::quiet_NaN();  // of values; none for shares and areas
};

// Mean with a 95 % bootstrap interval (percentile, 2000 resamples, keyed by seed); NaN values are left out. No values: all NaN;
// one value: no interval.
Interval mean_interval(std::span<const double> values, std::uint64_t seed);
// Does the same for values known to lie between `low` and `high`. Where all n are equal, up to rounding, a bootstrap would
// claim to know the mean exactly; but up to a share p = 1 - 0.025^(1/n) of all samples (Clopper & Pearson's bound for none of n)
// may have another value, anywhere in the range: the interval is [v - p (v - low), v + p (high - v)]. Ends that are infinite stay
// at v.
Interval mean_interval(std::span<const double> values, std::uint64_t seed, double low, double high);

// Where `value` lies between a level (0) and the value of identical maps (1); NaN where the two coincide, up to rounding.
double above_level(double value, double level, double perfect);

// Folded maps of B samples, row after row.
struct MapBatch {
  std::vector<double, LargeAllocator<double>> values;  // [B * features]; mapped where it is large
  std::int64_t count = 0;
  const Schema* schema = nullptr;

  MapView operator[](std::int64_t sample) const;
};

// What the metric says of two different samples.
struct PairValue {
  std::int64_t first = 0, second = 0;
  double value = 0;
};

struct BetweenOptions {
  std::int64_t pairs = 1000;  // seeded pairs of different samples; all pairs when there are no more than this
  std::uint64_t seed = 0;
};

// The levels do not depend on the attack. They are computed once for the clean maps of a model and explainer.
struct Levels {
  std::vector<double> chance;          // per sample; empty when the metric has none
  double between = 0;                  // mean over pairs of different samples; NaN when fewer than two samples
  std::vector<PairValue> pairs = {};   // that it is the mean of
  double between_same_class = 0;       // mean over pairs of different samples of one class; NaN without such pairs or labels
  std::int64_t distinct_top_sets = 0;  // number of different clean top-k sets; 0 for metrics of whole maps
  double tied_share = 0;               // share of samples whose top set was decided by the order of equal values
  std::optional<double> found;         // mean number of positions in a clean top set, where it may be below k (diverse sets)
};
// `labels` may be empty.
Levels compute_levels(const Metric& metric, const MapBatch& clean, std::span<const std::int64_t> labels,
                      const BetweenOptions& options);

// value - between, the means of `values` and of `pairs`. The interval is a bootstrap over samples, which takes a sample's pairs
// along. Where all values are equal, the ends move as those of mean_interval do: `value` is that interval. NaN without pairs.
Interval lift(std::span<const double> values, const Interval& value, std::span<const PairValue> pairs, std::uint64_t seed);

// The top sets of all samples before and after an attack, one a sample.
struct TopSets {
  std::vector<std::vector<std::int64_t>> clean, perturbed;
};
// Nothing for metrics of whole maps.
std::optional<TopSets> top_sets(const Metric& metric, const MapBatch& clean, const MapBatch& perturbed);
// exp of the entropy of the clean sets; those that an attack changed are one set together. With a bootstrap interval over
// samples: a resample has fewer sets, so that its low end lies rather too low.
Interval effective_sets(const TopSets& sets, std::uint64_t seed);

// (sum of own - sum of other) / (sum of own) over samples where both are defined, with a bootstrap interval over samples. NaN
// where the own features change nothing.
Interval own_advantage(std::span<const double> own, std::span<const double> other, std::uint64_t seed);

inline constexpr double kEnoughLift = 0.2, kEnoughSets = 3;

struct Assessment {
  std::string metric;
  std::vector<double> values;  // one a sample; NaN where undefined
  Interval value;
  std::optional<double> chance, adjusted, between, between_same_class, specific;
  // Nothing where undefined: lift without two samples, effective sets but for the top sets of vectors and tables, own advantage
  // without a model or a top set (experiment/own_advantage.h fills it in).
  std::optional<Interval> lift, effective_sets, own_advantage;
  Direction direction = Direction::kHigherIsMoreAlike;
  std::int64_t distinct_top_sets = 0;
  double tied_share = 0, tied_perturbed = 0;     // of the clean and of the perturbed maps
  bool chance_is_exact = true;                   // false: sampled
  std::optional<double> found, found_perturbed;  // mean number of positions in the clean and in the perturbed top sets
};
Assessment assess(const Metric& metric, const MapBatch& clean, const MapBatch& perturbed, const Levels& levels,
                  std::uint64_t seed);

// Holds where all three conditions surely do; does not hold where one surely does not; else not decided. Nothing where one of the
// three is undefined, and for distances.
std::optional<Judgement> robust_and_specific(const Assessment& assessment);

// Says so in the log where ties at the k-th value decide: there the order of the features does, not the model.
void warn_of_ties(const Assessment& assessment);

// The keys of `measure --json`: name, mean, low, high, chance, adjusted, between, specific, lift, effective_sets, own_advantage,
// values, and more (docs/metrics.md).
Json to_json(const Assessment& assessment);

}  // namespace holdfast::metric
