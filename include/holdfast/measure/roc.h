// Area under the ROC curve: the probability that a random sample of the class scores above a random one of the others,
// ties counting one half. Exact, by ranks: n log n, the same value as scikit-learn's roc_auc_score.
//
// Several classes: each against the rest, the mean over the classes (macro). The 95 % interval is that of
//   DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves", Biometrics 1988,
// with ranks as in Sun & Xu, "Fast implementation of DeLong's algorithm", 2014. For several classes a sample appears in
// the area of every class, so its parts are added up before the variance over the samples of one true class is taken; with
// two classes that is DeLong's formula unchanged.
//
// DeLong's interval has no width where every pair is ranked right, although few samples prove little. There m disjoint
// pairs, m the smaller of the two sides, are m independent trials that all succeeded: `low` is 0.025^(1/m), exactly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/metric/levels.h"

namespace holdfast::measure {

// Ranks from 1, equal values sharing the mean of their ranks.
std::vector<double> mid_ranks(std::span<const double> values);

// Two classes; label 1 is the class that should score higher. NaN without a sample of either.
Interval binary_auc(std::span<const double> scores, std::span<const std::int64_t> labels);

// `scores` is [samples, classes], row after row. Classes without a sample, or with nothing but their own, are left out of
// the mean; NaN when none is left. A class with a single sample leaves the interval undefined (NaN).
Interval macro_auc(std::span<const double> scores, std::span<const std::int64_t> labels, std::int64_t classes);

}  // namespace holdfast::measure
