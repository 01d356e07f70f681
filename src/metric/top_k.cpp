#include "holdfast/metric/top_k.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "holdfast/core/error.h"

namespace holdfast {
namespace {

// What decides membership: all values above `value`, and the first `ties` of those equal to it.
struct Threshold {
  double value = 0;
  std::int64_t ties = 0;
};

Threshold threshold_of(std::span<const double> values, std::int64_t k) {
  if (k == 0) return {std::numeric_limits<double>::infinity(), 0};
  // One copy a thread: attacks ask for thresholds by the million.
  thread_local std::vector<double> sorted;
  sorted.assign(values.begin(), values.end());
  const auto kth = sorted.begin() + (k - 1);
  std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
  const double value = *kth;
  return {value, k - std::count_if(sorted.begin(), kth, [&](double other) { return other > value; })};
}

// Up to this many comparisons, ranking each member by counting (which vectorises) beats a selection.
constexpr std::size_t kCountingLimit = 2048;

// The number of values that precede position `at` in descending order.
std::int64_t rank_of(std::span<const double> values, std::size_t at) {
  const double own = values[at];
  std::int64_t ahead = 0;
  for (std::size_t i = 0; i < at; ++i) ahead += values[i] >= own;
  for (std::size_t i = at + 1; i < values.size(); ++i) ahead += values[i] > own;
  return ahead;
}

}  // namespace

std::vector<std::int64_t> top_k_set(std::span<const double> values, std::int64_t k) {
  HOLDFAST_CHECK(k >= 0 && k <= static_cast<std::int64_t>(values.size()));
  Threshold threshold = threshold_of(values, k);
  std::vector<std::int64_t> members;
  members.reserve(static_cast<std::size_t>(k));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > threshold.value || (values[i] == threshold.value && threshold.ties-- > 0)) {
      members.push_back(static_cast<std::int64_t>(i));
    }
  }
  return members;
}

std::vector<std::int64_t> top_k_ranked(std::span<const double> values, std::int64_t k) {
  std::vector<std::int64_t> members = top_k_set(values, k);
  const auto value = [&](std::int64_t position) { return values[static_cast<std::size_t>(position)]; };
  std::stable_sort(members.begin(), members.end(), [&](std::int64_t a, std::int64_t b) { return value(a) > value(b); });
  return members;
}

bool tied_at(std::span<const double> values, std::int64_t k) {
  if (k <= 0 || k >= static_cast<std::int64_t>(values.size())) return false;
  const Threshold threshold = threshold_of(values, k);
  return std::count(values.begin(), values.end(), threshold.value) > threshold.ties;
}

TopSet::TopSet(std::span<const double> values, std::int64_t k)
    : TopSet(top_k_set(values, k), static_cast<std::int64_t>(values.size())) {}

TopSet::TopSet(std::vector<std::int64_t> members, std::int64_t features) : members_(std::move(members)) {
  std::sort(members_.begin(), members_.end());
  std::vector<std::int64_t> all(static_cast<std::size_t>(features));
  std::iota(all.begin(), all.end(), 0);
  std::set_difference(all.begin(), all.end(), members_.begin(), members_.end(), std::back_inserter(others_));
}

TopSet::Order TopSet::members_against_others(std::span<const double> values) const {
  double lowest_member = std::numeric_limits<double>::infinity();
  double highest_other = -std::numeric_limits<double>::infinity();
  for (const std::int64_t i : members_) lowest_member = std::min(lowest_member, values[static_cast<std::size_t>(i)]);
  for (const std::int64_t i : others_) highest_other = std::max(highest_other, values[static_cast<std::size_t>(i)]);
  if (lowest_member > highest_other) return Order::kAhead;
  return lowest_member == highest_other ? Order::kTied : Order::kBehind;
}

bool TopSet::holds(std::span<const double> values) const {
  const Order order = members_against_others(values);
  if (order != Order::kTied) return order == Order::kAhead;
  return overlap(values) == static_cast<std::int64_t>(members_.size());
}

std::int64_t TopSet::overlap(std::span<const double> values) const {
  const auto k = static_cast<std::int64_t>(members_.size());
  if (members_against_others(values) == Order::kAhead) return k;
  std::int64_t kept = 0;
  if (members_.size() * values.size() <= kCountingLimit) {
    for (const std::int64_t i : members_) kept += rank_of(values, static_cast<std::size_t>(i)) < k;
    return kept;
  }
  const Threshold threshold = threshold_of(values, k);
  for (const std::int64_t i : members_) kept += values[static_cast<std::size_t>(i)] > threshold.value;
  // Of the values at the threshold only the first few belong: walk them in order of index.
  std::int64_t ties = threshold.ties;
  auto member = members_.begin();
  for (std::size_t i = 0; ties > 0 && i < values.size(); ++i) {
    if (values[i] != threshold.value) continue;
    --ties;
    member = std::lower_bound(member, members_.end(), static_cast<std::int64_t>(i));
    kept += member != members_.end() && *member == static_cast<std::int64_t>(i);
  }
  return kept;
}

}  // namespace holdfast
