#include "rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/core/error.h"
#include "kernels.h"
#include "order.h"

namespace holdfast::metric {
namespace {

constexpr double kUndefinedCorrelation = std::numeric_limits<double>::quiet_NaN();

using Key = std::uint64_t;

std::int64_t pairs_of(std::int64_t count) {
  return count * (count - 1) / 2;
}

// Up to so many features all pairs are compared.
constexpr std::size_t kAllPairs = 1536;

// Runs of this length are sorted by insertion.
constexpr std::size_t kRun = 8;

std::int64_t insert_counting(Key* keys, std::size_t count) {
  std::int64_t exchanges = 0;
  for (std::size_t i = 1; i < count; ++i) {
    const Key key = keys[i];
    std::size_t hole = i;
    for (; hole > 0 && keys[hole - 1] > key; --hole) keys[hole] = keys[hole - 1];
    keys[hole] = key;
    exchanges += static_cast<std::int64_t>(i - hole);
  }
  return exchanges;
}

// Merges [from, middle) and [middle, end) to `to`. Every key taken from the right passes all that are left on the left. Without
// branches: which side is next cannot be guessed.
std::int64_t merge_counting(const Key* from, const Key* middle, const Key* end, Key* to) {
  const Key *left = from, *right = middle;
  std::int64_t exchanges = 0;
  while (left < middle && right < end) {
    const Key a = *left, b = *right;
    const std::int64_t take_right = b < a;
    *to++ = b < a ? b : a;
    exchanges += (middle - left) & -take_right;
    left += 1 - take_right;
    right += take_right;
  }
  to = std::copy(left, middle, to);
  std::copy(right, end, to);
  return exchanges;
}

// Merges two runs of one length from both ends at once: two chains of steps that do not wait for each other.
std::int64_t merge_even_counting(const Key* from, const Key* middle, Key* to) {
  const std::ptrdiff_t length = middle - from;
  const Key *left = from, *right = middle, *last_left = middle - 1, *last_right = middle + length - 1;
  Key* last = to + 2 * length - 1;
  std::int64_t exchanges = 0;
  for (std::ptrdiff_t i = 0; i < length; ++i) {
    const Key a = *left, b = *right;
    const std::int64_t take_right = b < a;
    *to++ = b < a ? b : a;
    exchanges += (middle - left) & -take_right;
    left += 1 - take_right;
    right += take_right;

    const Key c = *last_left, d = *last_right;
    const std::int64_t take_left = d < c;
    *last-- = d < c ? c : d;
    exchanges += (last_right - middle + 1) & -take_left;
    last_left -= take_left;
    last_right -= 1 - take_left;
  }
  // Keys taken from the right in front have passed those taken from the left at the back: counted at both ends.
  return exchanges - (middle - left) * (right - middle);
}

// Sorts the keys and counts the pairs that were in the wrong order; equal keys are in the right one.
std::int64_t sort_counting(std::span<Key> keys) {
  thread_local std::vector<Key> other;
  const std::size_t count = keys.size();
  other.resize(std::max(other.size(), count));
  std::int64_t exchanges = 0;
  for (std::size_t i = 0; i < count; i += kRun) exchanges += insert_counting(keys.data() + i, std::min(kRun, count - i));
  Key *from = keys.data(), *to = other.data();
  for (std::size_t run = kRun; run < count; run *= 2) {
    for (std::size_t i = 0; i < count; i += 2 * run) {
      const std::size_t middle = std::min(i + run, count), end = std::min(i + 2 * run, count);
      exchanges += end - i == 2 * run ? merge_even_counting(from + i, from + middle, to + i)
                                      : merge_counting(from + i, from + middle, from + end, to + i);
    }
    std::swap(from, to);
  }
  if (from != keys.data()) std::copy(from, from + count, keys.data());
  return exchanges;
}

std::int64_t tied_pairs_of(std::span<const Key> sorted) {
  std::int64_t pairs = 0;
  for (std::size_t first = 0, end = 0; first < sorted.size(); first = end) {
    for (end = first + 1; end < sorted.size() && sorted[end] == sorted[first];) ++end;
    pairs += pairs_of(static_cast<std::int64_t>(end - first));
  }
  return pairs;
}

// A correlation from its three sums; rounding must not take it past 1.
double from_sums(double product, double a, double b) {
  if (a <= 0 || b <= 0) return kUndefinedCorrelation;
  return std::clamp(product / std::sqrt(a * b), -1.0, 1.0);
}

// Calls visit(feature, twice its mean rank from the middle) for all features and gives the sum of the squares.
template <class Visit>
double visit_ranks(std::span<const Ranked> sorted, const Visit& visit) {
  double squares = 0;
  visit_ties(sorted, [&](std::size_t first, std::size_t end) {
    // Ranks first+1 to end, the middle being (n+1)/2.
    const double rank = static_cast<double>(first + end) - static_cast<double>(sorted.size());
    squares += rank * rank * static_cast<double>(end - first);
    for (std::size_t i = first; i < end; ++i) visit(sorted[i].feature, rank);
  });
  return squares;
}

}  // namespace

void KendallOriginal::set(std::span<const double> original) {
  thread_local std::vector<Ranked> sorted;
  sort_ascending(original, sorted);
  order_.resize(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) order_[i] = sorted[i].feature;
  ties_.clear();
  tied_pairs_ = 0;
  visit_ties(sorted, [&](std::size_t first, std::size_t end) {
    if (end - first < 2) return;
    ties_.emplace_back(first, end);
    tied_pairs_ += pairs_of(static_cast<std::int64_t>(end - first));
  });
}

// Counts by Knight's merge sort.
KendallOriginal::Counts KendallOriginal::count_by_sorting(std::span<const double> perturbed) const {
  thread_local std::vector<Key> keys;
  keys.resize(order_.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = key_of(perturbed[order_[i]]);
  Counts counts;
  // Where the original is tied, nothing is discordant; pairs tied in both maps are counted on the way.
  for (const auto& [first, end] : ties_) {
    const std::span<Key> tied = std::span(keys).subspan(first, end - first);
    sort_counting(tied);
    counts.tied_in_both += tied_pairs_of(tied);
  }
  counts.discordant = sort_counting(keys);
  counts.tied = tied_pairs_of(keys);
  return counts;
}

// All pairs, sixteen at a time: up to a thousand features or so that is faster than sorting.
KendallOriginal::Counts KendallOriginal::count_all_pairs(std::span<const double> perturbed) const {
  thread_local std::vector<Ranked> sorted;
  thread_local std::vector<std::int16_t> ranks, in_order;
  thread_local std::vector<std::int64_t> seen;
  sort_ascending(perturbed, sorted);
  ranks.resize(order_.size());
  in_order.resize(order_.size());
  seen.assign(order_.size(), 0);
  Counts counts;
  visit_ties(sorted, [&](std::size_t first, std::size_t end) {
    counts.tied += pairs_of(static_cast<std::int64_t>(end - first));
    for (std::size_t i = first; i < end; ++i) ranks[sorted[i].feature] = static_cast<std::int16_t>(first);
  });
  for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i] = ranks[order_[i]];
  counts.discordant = kernels::count_exchanges(in_order);
  for (const auto& [first, end] : ties_) {
    const std::span<const std::int16_t> tied = std::span(in_order).subspan(first, end - first);
    counts.discordant -= kernels::count_exchanges(tied);
    for (const std::int16_t rank : tied) counts.tied_in_both += seen[static_cast<std::size_t>(rank)]++;
    for (const std::int16_t rank : tied) seen[static_cast<std::size_t>(rank)] = 0;
  }
  return counts;
}

double KendallOriginal::correlation(std::span<const double> perturbed) const {
  HOLDFAST_CHECK(perturbed.size() == order_.size());
  const bool few = perturbed.size() <= kAllPairs && kernels::has_avx2();
  const Counts counts = few ? count_all_pairs(perturbed) : count_by_sorting(perturbed);
  const std::int64_t pairs = pairs_of(static_cast<std::int64_t>(perturbed.size()));
  const std::int64_t difference = pairs - tied_pairs_ - counts.tied + counts.tied_in_both - 2 * counts.discordant;
  return from_sums(static_cast<double>(difference), static_cast<double>(pairs - tied_pairs_),
                   static_cast<double>(pairs - counts.tied));
}

void SpearmanOriginal::set(std::span<const double> original) {
  thread_local std::vector<Ranked> sorted;
  sort_ascending(original, sorted);
  ranks_.resize(sorted.size());
  squares_ = visit_ranks(sorted, [&](std::uint32_t feature, double rank) { ranks_[feature] = rank; });
}

double SpearmanOriginal::correlation(std::span<const double> perturbed) const {
  HOLDFAST_CHECK(perturbed.size() == ranks_.size());
  thread_local std::vector<Ranked> sorted;
  sort_ascending(perturbed, sorted);
  double product = 0;
  const double squares = visit_ranks(sorted, [&](std::uint32_t feature, double rank) { product += rank * ranks_[feature]; });
  return from_sums(product, squares_, squares);
}

}  // namespace holdfast::metric
