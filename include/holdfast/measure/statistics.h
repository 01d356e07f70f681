// Statistics of per-sample values: two models on the same samples, many comparisons, and correlations. Free of torch.
//
// A mean with its bootstrap interval is mean_interval (metric/levels.h); a share with its exact one proportion.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/metric/levels.h"

namespace holdfast::measure {

// Two models, or two of anything, measured on the same samples.
struct PairedComparison {
  double first = 0, second = 0;  // means over the samples where both are defined
  Interval difference;           // first - second: mean and percentile bootstrap over samples, 2000 resamples
  // Two-sided sign-flip test of a mean difference of 0: the share of all ways to swap the two values of samples whose mean
  // difference is at least as large. Exact up to kExactFlips samples that differ, else (1 + met) / (1 + 9999) from 9999 seeded
  // ways.
  double p_value = 1;
  bool exact = true;
  double corrected = 1;  // p_value after a correction for several comparisons; set by correct()
};
inline constexpr std::int64_t kExactFlips = 20;

// Values in the same order of samples; NaN where undefined. No pair that is defined: NaN, p 1.
PairedComparison compare_paired(std::span<const double> first, std::span<const double> second, std::uint64_t seed);

// Corrected p-values, each to be held against the level itself.
//   holm: none of the rejected is true by chance with that probability (Holm 1979)
//   benjamini_hochberg: the share of chance findings among the rejected is at most that, on average (1995)
std::vector<double> holm(std::span<const double> p_values);
std::vector<double> benjamini_hochberg(std::span<const double> p_values);
// Sets `corrected` of all by Holm's method.
void correct(std::span<PairedComparison> comparisons);

// {"first", "second", "difference": {"mean", "low", "high", "count"}, "p_value", "corrected", "exact"}
Json to_json(const PairedComparison& comparison);

enum class CorrelationKind { kPearson, kSpearman, kKendall };  // Kendall's tau-b

struct Correlation {
  double value = 0, low = 0, high = 0;  // 95 %: percentile bootstrap over samples, 2000 resamples; NaN below 4 samples
  std::int64_t count = 0;               // pairs that were defined
};
// The value alone, of values that are all defined; NaN where one side is constant.
double correlation(CorrelationKind kind, std::span<const double> x, std::span<const double> y);
// Pairs with an undefined value are left out; NaN where one side is constant.
Correlation correlate(CorrelationKind kind, std::span<const double> x, std::span<const double> y, std::uint64_t seed);

// Iterations to the first swap, as numbers that ranks can be taken of. A sample that never swapped in `steps` iterations (-1) is
// censored: its time is later than all of them, how much later is not known. It becomes steps + 1, tied with the others like
// it, so that rank correlations compare it with every sample that did swap and with none that did not; Pearson's correlation
// would take the number at its word and should not be used.
std::vector<double> censored_times(std::span<const std::int64_t> first_swap, std::int64_t steps);

}  // namespace holdfast::measure
