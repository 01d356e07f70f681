#include "holdfast/measure/roc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "../nan.h"
#include "holdfast/core/error.h"

namespace holdfast::measure {
namespace {

constexpr double kNormalQuantile = 1.959963984540054;  // 97.5 %

// Computes the area of one class against the rest.
struct Area {
  double value = kNaN;
  std::int64_t positives = 0, negatives = 0;
  // Share of the other side that the sample is ranked rightly against: the mean over the positives is `value`, and so is
  // the mean over the negatives.
  std::vector<double> placements;
};

Area one_against_rest(std::span<const double> scores, std::span<const std::int64_t> labels, std::int64_t positive) {
  std::vector<std::pair<double, std::size_t>> order;
  Area area;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    order.emplace_back(scores[i], i);
    ++(labels[i] == positive ? area.positives : area.negatives);
  }
  if (area.positives == 0 || area.negatives == 0) return area;

  std::sort(order.begin(), order.end());
  area.placements.resize(scores.size());
  const double positives = static_cast<double>(area.positives), negatives = static_cast<double>(area.negatives);
  double less[2] = {0, 0};  // samples of each side that score less than those of the group
  double wins = 0;          // pairs ranked rightly, ties one half: whole and half numbers, so the sum is exact
  for (auto begin = order.begin(); begin != order.end();) {
    double equal[2] = {0, 0};
    auto end = begin;
    do {
      ++equal[labels[end++->second] == positive];
    } while (end != order.end() && end->first == begin->first);
    for (; begin != end; ++begin) {
      const bool is_positive = labels[begin->second] == positive;
      const double below = less[!is_positive] + equal[!is_positive] / 2;
      if (is_positive) wins += below;
      area.placements[begin->second] = is_positive ? below / negatives : 1 - below / positives;
    }
    for (const int side : {0, 1}) less[side] += equal[side];
  }
  area.value = wins / (positives * negatives);
  return area;
}

// Variance of a sum over samples drawn class by class.
double stratified_variance(std::span<const double> parts, std::span<const std::int64_t> labels, std::int64_t classes) {
  std::vector<double> count(static_cast<std::size_t>(classes)), mean(count), squares(count);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto stratum = static_cast<std::size_t>(labels[i]);
    HOLDFAST_CHECK(stratum < count.size());
    ++count[stratum];
    const double step = parts[i] - mean[stratum];
    mean[stratum] += step / count[stratum];
    squares[stratum] += step * (parts[i] - mean[stratum]);
  }
  double variance = 0;
  for (std::size_t stratum = 0; stratum < count.size(); ++stratum) {
    if (count[stratum] > 0) variance += count[stratum] * squares[stratum] / (count[stratum] - 1);  // 0/0 for a single sample: NaN
  }
  return variance;
}

Interval with_limits(double value, double variance, std::int64_t smallest_side, std::size_t samples) {
  Interval result{.mean = value, .count = static_cast<std::int64_t>(samples)};
  const double certain = std::pow(0.025, 1.0 / static_cast<double>(smallest_side));
  const double reach = kNormalQuantile * std::sqrt(variance);
  if (value == 1) {
    result.low = certain, result.high = 1;
  } else if (value == 0) {
    result.low = 0, result.high = 1 - certain;
  } else if (std::isnan(reach)) {
    result.low = result.high = kNaN;  // a clamp would turn it into a limit
  } else {
    result.low = std::max(value - reach, 0.0), result.high = std::min(value + reach, 1.0);
  }
  return result;
}

// The mean of the areas of classes first..classes-1, each against the rest; score(sample, class).
template <class Score>
Interval mean_area(std::span<const std::int64_t> labels, std::int64_t first, std::int64_t classes, const Score& score) {
  std::vector<double> column(labels.size()), parts(labels.size());
  double sum = 0, used = 0;
  std::int64_t smallest_side = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t positive = first; positive < classes; ++positive) {
    for (std::size_t i = 0; i < column.size(); ++i) column[i] = score(i, static_cast<std::size_t>(positive));
    const Area area = one_against_rest(column, labels, positive);
    if (std::isnan(area.value)) continue;
    sum += area.value;
    ++used;
    smallest_side = std::min({smallest_side, area.positives, area.negatives});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] += area.placements[i] / static_cast<double>(labels[i] == positive ? area.positives : area.negatives);
    }
  }
  if (used == 0) return {kNaN, kNaN, kNaN, 0};
  for (double& part : parts) part /= used;
  return with_limits(sum / used, stratified_variance(parts, labels, classes), smallest_side, labels.size());
}

}  // namespace

std::vector<double> mid_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
    begin = end;
  }
  return ranks;
}

Interval binary_auc(std::span<const double> scores, std::span<const std::int64_t> labels) {
  HOLDFAST_CHECK(scores.size() == labels.size());
  return mean_area(labels, 1, 2, [&](std::size_t sample, std::size_t) { return scores[sample]; });
}

Interval macro_auc(std::span<const double> scores, std::span<const std::int64_t> labels, std::int64_t classes) {
  HOLDFAST_CHECK(scores.size() == labels.size() * static_cast<std::size_t>(classes));
  return mean_area(labels, 0, classes, [&](std::size_t sample, std::size_t column) {
    return scores[sample * static_cast<std::size_t>(classes) + column];
  });
}

}  // namespace holdfast::measure
