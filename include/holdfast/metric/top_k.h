// The k largest values of a map, as a set. Linear in the map's size; equal values are taken from the lower index on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/metric/feature_set.h"

namespace holdfast::metric {

// Positions of the k largest values, ascending; 0 <= k <= values.size(), values finite.
std::vector<std::int64_t> top_k_set(std::span<const double> values, std::int64_t k);

// Gives the same positions as bits, in a set that has the map's shape already; what the set held is forgotten.
void top_k_bits(std::span<const double> values, std::int64_t k, FeatureSet& set);

// Gives the same positions, most important first, for showing.
std::vector<std::int64_t> top_k_ranked(std::span<const double> values, std::int64_t k);

// Whether the k-th and the (k+1)-th largest values are equal: the set is then a matter of tie-breaking.
bool tied_at(std::span<const double> values, std::int64_t k);

// The top k of one map, to be held against many others of the same size.
class TopSet {
 public:
  TopSet(std::span<const double> values, std::int64_t k);
  // From positions that are known already, ascending; `features` is the size of a map.
  TopSet(std::span<const std::int64_t> members, std::int64_t features);

  // How many members are in the top k of `values`.
  std::int64_t overlap(std::span<const double> values) const;
  // Whether all of them are; cheaper than counting.
  bool holds(std::span<const double> values) const;

  std::int64_t size() const { return static_cast<std::int64_t>(k_); }

 private:
  std::span<const std::uint32_t> members() const { return std::span(order_).first(k_); }
  std::span<const std::uint32_t> others() const { return std::span(order_).subspan(k_); }

  // Members, then all others, each ascending. Attacks keep two of these a sample: small ones stay in the cache.
  std::vector<std::uint32_t> order_;
  std::size_t k_;
};

}  // namespace holdfast::metric
