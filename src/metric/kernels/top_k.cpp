#include "holdfast/metric/top_k.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "holdfast/core/error.h"
#include "kernels.h"
#include "select.h"

namespace holdfast::metric {
namespace {

// Up to this many comparisons, ranking the members in question by counting (which vectorises) beats a selection.
constexpr std::size_t kCountingLimit = 4096;

// The number of values that precede position `at` in descending order.
std::int64_t rank_of(const double* values, std::size_t count, std::size_t at) {
  const double own = values[at];
  std::int64_t ahead = 0;
  for (std::size_t i = 0; i < at; ++i) ahead += values[i] >= own;
  for (std::size_t i = at + 1; i < count; ++i) ahead += values[i] > own;
  return ahead;
}

// The extreme of the values at `positions`, in four parts: one running extreme would wait for itself at every step.
template <class Better>
double extreme(const double* values, std::span<const std::uint32_t> positions, double start, const Better& better) {
  double parts[4] = {start, start, start, start};
  std::size_t i = 0;
  for (; i + 4 <= positions.size(); i += 4) {
    for (std::size_t j = 0; j < 4; ++j) parts[j] = better(values[positions[i + j]], parts[j]);
  }
  for (; i < positions.size(); ++i) parts[0] = better(values[positions[i]], parts[0]);
  return better(better(parts[0], parts[1]), better(parts[2], parts[3]));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double lowest(const double* values, std::span<const std::uint32_t> positions) {
  return extreme(values, positions, kInfinity, [](double a, double b) { return a < b ? a : b; });
}

double highest(const double* values, std::span<const std::uint32_t> positions) {
  return extreme(values, positions, -kInfinity, [](double a, double b) { return a > b ? a : b; });
}

// Members among the top k by selection: linear in the map's size.
std::int64_t overlap_by_selection(std::span<const double> values, std::span<const std::uint32_t> members) {
  const Threshold threshold = threshold_of(values, static_cast<std::int64_t>(members.size()));
  std::int64_t kept = 0;
  for (const std::uint32_t i : members) kept += values[i] > threshold.value;
  // Only the first few of the values at the threshold belong to the set. They are visited in order of index.
  std::int64_t ties = threshold.ties;
  auto member = members.begin();
  for (std::size_t i = 0; ties > 0 && i < values.size(); ++i) {
    if (values[i] != threshold.value) continue;
    --ties;
    member = std::lower_bound(member, members.end(), i);
    kept += member != members.end() && *member == i;
  }
  return kept;
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

void top_k_bits(std::span<const double> values, std::int64_t k, FeatureSet& set) {
  HOLDFAST_CHECK(static_cast<std::int64_t>(values.size()) == set.rows() * set.width());
  const Threshold threshold = threshold_of(values, k);
  kernels::bits_at_least(values, static_cast<std::size_t>(set.width()), threshold.value, set.words().data());
  // Only the first few of the values at the threshold belong to the set. The last ones are removed.
  std::int64_t surplus = set.count() - k;
  for (std::size_t i = values.size(); surplus > 0; --i) {
    if (values[i - 1] != threshold.value) continue;
    set.remove(static_cast<std::int64_t>(i - 1));
    --surplus;
  }
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

TopSet::TopSet(std::span<const std::int64_t> members, std::int64_t features) : k_(members.size()) {
  HOLDFAST_CHECK(std::is_sorted(members.begin(), members.end()) && features <= std::numeric_limits<std::uint32_t>::max());
  order_.reserve(static_cast<std::size_t>(features));
  for (const std::int64_t member : members) order_.push_back(static_cast<std::uint32_t>(member));
  auto next = members.begin();
  for (std::int64_t i = 0; i < features; ++i) {
    if (next != members.end() && *next == i) {
      ++next;
    } else {
      order_.push_back(static_cast<std::uint32_t>(i));
    }
  }
}

bool TopSet::holds(std::span<const double> values) const {
  const double member = lowest(values.data(), members()), other = highest(values.data(), others());
  return member != other ? member > other : overlap(values) == size();
}

std::int64_t TopSet::overlap(std::span<const double> values) const {
  HOLDFAST_CHECK(values.size() == order_.size());
  const double best_other = highest(values.data(), others());
  // Members above every other feature are certain to be in.
  std::int64_t certain = 0;
  for (const std::uint32_t i : members()) certain += values[i] > best_other;
  if (certain == size()) return certain;
  if (k_ * values.size() > kCountingLimit) return overlap_by_selection(values, members());
  std::int64_t ranked = 0;
  for (const std::uint32_t i : members()) {
    if (values[i] <= best_other) ranked += rank_of(values.data(), values.size(), i) < size();
  }
  return certain + ranked;
}

}  // namespace holdfast::metric
