// Numbers over several trained networks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/measure/statistics.h"

namespace holdfast::experiment {

// Intervals over seeds that this thread makes while it lives have this level; without one they have 0.95. For data that is looked
// at several times.
class IntervalLevel {
 public:
  explicit IntervalLevel(double level);
  ~IntervalLevel();
  IntervalLevel(const IntervalLevel&) = delete;
  IntervalLevel& operator=(const IntervalLevel&) = delete;

 private:
  double before_;
};
double interval_level();

// One number for each seed -> their mean with Student's interval of the interval_level; seeds where it is undefined are left out,
// and a single seed has no interval.
Value over_seeds(std::span<const double> per_seed);
// The same for values of samples, by seed: means over samples, then over seeds. One seed: the bootstrap interval over its
// samples.
Value over_seeds(const std::vector<std::vector<double>>& samples_by_seed, std::uint64_t seed);
// first - second, paired by seed; one seed: paired by sample.
Value difference_over_seeds(const std::vector<std::vector<double>>& first, const std::vector<std::vector<double>>& second,
                            std::uint64_t seed);
// The same for one number a seed.
Value difference_over_seeds(std::span<const double> first, std::span<const double> second);

// Keeps the interval of a number that lies in [0, 1] there: Student's of a few seeds reaches past it.
Value share(Value value);

// Mean of the values that are defined; NaN when there are none.
double defined_mean(std::span<const double> values);

}  // namespace holdfast::experiment
