// A map's features in order of value, by keys that compare faster than doubles.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast::metric {

// For values >= 0 the bits of a double order like the double itself; -0 becomes 0.
inline std::uint64_t key_of(double value) {
  return std::bit_cast<std::uint64_t>(value + 0.0);
}

struct Ranked {
  std::uint64_t key;
  std::uint32_t feature;
};

// Ascending by value, equal values by position. Values are >= 0 and finite. One counting sort by the leading bits that differ,
// then insertion within buckets: linear for maps whose values spread over their range or, as explanations, over its logarithm;
// O(n log n) for any other.
void sort_ascending(std::span<const double> values, std::vector<Ranked>& sorted);

// Calls visit(first, end) for every run of equal keys in an ascending order.
template <class Visit>
void visit_ties(std::span<const Ranked> sorted, const Visit& visit) {
  for (std::size_t first = 0, end = 0; first < sorted.size(); first = end) {
    for (end = first + 1; end < sorted.size() && sorted[end].key == sorted[first].key;) ++end;
    visit(first, end);
  }
}

// Most important first, equal values from the lower position on.
void sort_descending(std::span<const double> values, std::vector<std::uint32_t>& order);

}  // namespace holdfast::metric
