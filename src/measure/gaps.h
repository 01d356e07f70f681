// Gaps between features that ranked high and features that ranked low, over all pairs of them, without going through the
// pairs. Free of torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace holdfast::measure {

class Gaps {
 public:
  // Positions in a map; neither is empty.
  Gaps(std::vector<std::int64_t> above, std::vector<std::int64_t> below);

  // Share of pairs (i in above, j in below) with values[i] >= values[j]. Linear where all of them are, else n log n.
  double share_in_order(std::span<const double> values);
  // Mean of values[i] - values[j] over the pairs: the mean of the ones minus the mean of the others.
  double mean_gap(std::span<const double> values) const;

 private:
  std::vector<std::int64_t> above_, below_;
  std::vector<double> low_;  // work space
};

// The top k of a map against the rest; 0 < k < values.size(). Ties to the lower index.
Gaps top_k_gaps(std::span<const double> values, std::int64_t k);
// The features of two ranks against each other; 1 is the most important.
Gaps pair_gap(std::span<const double> values, std::int64_t rank, std::int64_t lower_rank);

}  // namespace holdfast::measure
