// A share of successes with its exact 95 % interval.
//
// Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 1934:
// `low` is the p at which `successes` or more have probability 2.5 %, `high` the p at which `successes` or fewer have it.
// It covers the true share at least 95 % of the time, however few samples there are; 57 of 57 gives [0.937, 1].
#pragma once

#include <cstdint>

#include "holdfast/core/stages.h"
#include "holdfast/metric/levels.h"

namespace holdfast::measure {

// 0 <= successes <= count; count 0 gives NaN.
Interval proportion_interval(std::int64_t successes, std::int64_t count);

// Ends of the share's exact interval with probability `tail` beyond each; count > 0, 0 < tail < 1/2.
struct ProportionBounds {
  double low = 0, high = 1;
};
ProportionBounds proportion_bounds(std::int64_t successes, std::int64_t count, double tail);

// P(X >= successes) for X binomial with `count` trials of probability p.
double binomial_upper_tail(std::int64_t successes, std::int64_t count, double p);

}  // namespace holdfast::measure
