#include "order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "holdfast/core/error.h"

namespace holdfast::metric {
namespace {

// Buckets of up to so many are left to the final pass of insertions.
constexpr std::uint32_t kInsertionLimit = 24;

bool before(const Ranked& a, const Ranked& b) {
  return a.key != b.key ? a.key < b.key : a.feature < b.feature;
}

// Sorts what is nearly in order and keeps the order of equal keys.
void insertion_sort(std::vector<Ranked>& items) {
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Ranked item = items[i];
    std::size_t hole = i;
    for (; hole > 0 && items[hole - 1].key > item.key; --hole) items[hole] = items[hole - 1];
    items[hole] = item;
  }
}

// Zero has bucket 0 to itself: it is by far the most common value and lies far from all others in bits.
struct Buckets {
  std::uint64_t base;  // a bucket's width below the lowest key above 0
  int shift;
  std::size_t count;

  std::size_t of(std::uint64_t key) const { return static_cast<std::size_t>((std::max(key, base) - base) >> shift); }
};

Buckets buckets_for(std::span<const double> values) {
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max(), highest = 0;
  for (const double value : values) {
    const std::uint64_t key = key_of(value);
    lowest = std::min(lowest, key - 1);  // 0 wraps round to the largest
    highest = std::max(highest, key);
  }
  if (highest == 0) return {.base = 0, .shift = 0, .count = 1};
  ++lowest;
  const int bits = std::countr_zero(std::bit_ceil(values.size())) + 1;  // two buckets a value, or more
  const int shift = std::max(0, 64 - std::countl_zero(highest - lowest) - bits);
  // Values next to zero may leave no room for a bucket below them: they share it, in order.
  const std::uint64_t base = lowest - std::min(lowest, std::uint64_t{1} << shift);
  return {base, shift, static_cast<std::size_t>((highest - base) >> shift) + 1};
}

}  // namespace

void sort_ascending(std::span<const double> values, std::vector<Ranked>& sorted) {
  HOLDFAST_CHECK(values.size() < std::numeric_limits<std::uint32_t>::max());
  sorted.resize(values.size());
  const Buckets buckets = buckets_for(values);
  thread_local std::vector<std::uint32_t> ends;   // first counts, then where the next one goes: in the end, each bucket's end
  thread_local std::vector<std::uint32_t> large;  // buckets, with their starts
  ends.assign(buckets.count, 0);
  large.clear();
  for (const double value : values) ++ends[buckets.of(key_of(value))];
  std::uint32_t start = 0;
  for (std::uint32_t bucket = 0; bucket < buckets.count; ++bucket) {
    const std::uint32_t size = std::exchange(ends[bucket], start);
    if (size > kInsertionLimit) large.insert(large.end(), {bucket, start});
    start += size;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t key = key_of(values[i]);
    sorted[ends[buckets.of(key)]++] = {key, static_cast<std::uint32_t>(i)};
  }
  for (std::size_t i = 0; i < large.size(); i += 2) {
    const auto first = sorted.begin() + large[i + 1], end = sorted.begin() + ends[large[i]];
    if (!std::is_sorted(first, end, before)) std::sort(first, end, before);
  }
  insertion_sort(sorted);
}

void sort_descending(std::span<const double> values, std::vector<std::uint32_t>& order) {
  thread_local std::vector<Ranked> sorted;
  sort_ascending(values, sorted);
  order.resize(sorted.size());
  visit_ties(sorted, [&](std::size_t first, std::size_t end) {
    std::uint32_t* to = order.data() + (sorted.size() - end);
    for (std::size_t i = first; i < end; ++i) *to++ = sorted[i].feature;
  });
}

}  // namespace holdfast::metric
