#include "slopes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace holdfast::attack::gauntlet::slopes {
namespace {

constexpr float kLeast = std::numeric_limits<float>::min();
constexpr std::size_t kSums = 8;

// Sum of term(i) in interleaved parts: one running sum would wait for itself at every addition.
template <class Term>
float sum(std::size_t n, const Term& term) {
  float parts[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (std::size_t lane = 0; lane < kSums; ++lane) parts[lane] += term(i + lane);
  }
  for (; i < n; ++i) parts[0] += term(i);
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

// Up to so many values are kept in order by insertion. Of the few features of a table most are below the k-th already.
constexpr std::size_t kInserted = 32;

// The k highest of some values, k from 1 to their number, go to the front. The k-th highest is the last of them; the order of the
// others is not defined.
void bring_highest(std::vector<float>& values, std::size_t k) {
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(k - 1);
  if (k > kInserted) {
    std::nth_element(values.begin(), last, values.end(), std::greater<>());
    return;
  }
  std::sort(values.begin(), last + 1, std::greater<>());
  for (std::size_t i = k; i < values.size(); ++i) {
    const float value = values[i];
    if (!(value > *last)) continue;
    std::size_t place = k - 1;
    for (; place > 0 && value > values[place - 1]; --place) values[place] = values[place - 1];
    values[place] = value;
  }
}

}  // namespace

void scale(std::span<const float> map, float* values) {
  float parts[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= map.size(); i += kSums) {
    for (std::size_t lane = 0; lane < kSums; ++lane) {
      const float value = std::abs(map[i + lane]);
      parts[lane] = value > parts[lane] ? value : parts[lane];
    }
  }
  for (; i < map.size(); ++i) parts[0] = std::max(parts[0], std::abs(map[i]));
  const float factor = 1 / std::max(*std::max_element(parts, parts + kSums), kLeast);
  for (i = 0; i < map.size(); ++i) values[i] = std::abs(map[i]) * factor;
}

void take_signs(std::span<const float> map, float* slope) {
  for (std::size_t i = 0; i < map.size(); ++i) {
    const float sign = map[i] > 0 ? 1.0f : map[i] < 0 ? -1.0f : map[i];
    slope[i] *= sign;
  }
}

void contrast(Values values, std::int64_t k, const float* top, const float* near, const float* weights,
              std::vector<float>& scratch, float* slope) {
  const std::size_t n = values.size();
  const auto weight = [&](std::size_t i) { return weights != nullptr ? weights[i] : 1.0f; };
  const auto value = [&](std::size_t i) { return values[i] * weight(i); };
  scratch.clear();
  for (std::size_t i = 0; i < n; ++i) {
    if (near[i] == 0) scratch.push_back(value(i));
  }
  // Of the features outside, the k highest; of equal ones those that come first.
  const bool all = std::ssize(scratch) <= k;
  if (!all && k > 0) bring_highest(scratch, static_cast<std::size_t>(k));
  const float limit = all || k == 0 ? -1.0f : scratch[static_cast<std::size_t>(k - 1)];
  std::int64_t ties =
      all ? 0 : k - std::count_if(scratch.begin(), scratch.begin() + k, [&](float other) { return other > limit; });
  const float inside = sum(n, [&](std::size_t i) { return top[i] * value(i); });
  float outside = 0;
  std::fill_n(slope, n, 0.0f);
  for (std::size_t i = 0; i < n; ++i) {
    if (near[i] != 0 || !(value(i) >= limit)) continue;
    if (value(i) == limit && ties-- <= 0) continue;
    slope[i] = 1;
    outside += value(i);
  }
  const float down = 1 / std::max(inside, kLeast), up = 1 / std::max(outside, kLeast);
  for (std::size_t i = 0; i < n; ++i) slope[i] = (top[i] * down - slope[i] * up) * weight(i);
}

void gaps(Values values, const float* weights, float* slope) {
  const std::size_t n = values.size();
  const float norm = std::max(std::sqrt(sum(n, [&](std::size_t i) { return values[i] * values[i]; })), kLeast);
  const float gap = sum(n, [&](std::size_t i) { return weights[i] * values[i]; }) / norm;
  for (std::size_t i = 0; i < n; ++i) slope[i] = weights[i] - values[i] * (gap / norm);
}

void threshold(Values values, std::int64_t k, double temperature, const float* inside, const float* outside,
               std::vector<float>& scratch, float* slope) {
  constexpr float kTiny = 1e-6f;
  const std::size_t n = values.size();
  scratch.assign(values.begin(), values.end());
  bring_highest(scratch, static_cast<std::size_t>(k + 1));
  const float next = scratch[static_cast<std::size_t>(k)];
  const float kth = *std::min_element(scratch.begin(), scratch.begin() + k);
  const float tau = std::max((kth + next) / 2, kTiny), sharpness = static_cast<float>(1 / temperature);
  // slope <- q (1 - q) of the soft count, then the difference of both pulls.
  for (std::size_t i = 0; i < n; ++i) {
    const float e = std::exp(-std::abs(std::log(std::max(values[i], kTiny) / tau)) * sharpness);
    slope[i] = e / ((1 + e) * (1 + e));
  }
  const float lowered = std::max(sum(n, [&](std::size_t i) { return inside[i] * slope[i]; }), kLeast);
  const float raised = std::max(sum(n, [&](std::size_t i) { return outside[i] * slope[i]; }), kLeast);
  for (std::size_t i = 0; i < n; ++i)
    slope[i] = slope[i] * (inside[i] / lowered - outside[i] / raised) / std::max(values[i], kTiny);
}

}  // namespace holdfast::attack::gauntlet::slopes
