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

// The k-th highest of some values; k is from 1 to their number. The values change places.
float highest(std::vector<float>& values, std::int64_t k) {
  const auto kth = values.begin() + (k - 1);
  std::nth_element(values.begin(), kth, values.end(), std::greater<>());
  return *kth;
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

void contrast(Values values, std::int64_t k, const float* top, const float* near, const float* weights, std::vector<float>& scratch,
              float* slope) {
  const std::size_t n = values.size();
  const auto weight = [&](std::size_t i) { return weights != nullptr ? weights[i] : 1.0f; };
  const auto value = [&](std::size_t i) { return values[i] * weight(i); };
  scratch.clear();
  for (std::size_t i = 0; i < n; ++i) {
    if (near[i] == 0) scratch.push_back(value(i));
  }
  // Of the features outside, the k highest; of equal ones those that come first.
  const bool all = std::ssize(scratch) <= k;
  const float limit = all || k == 0 ? -1.0f : highest(scratch, k);
  std::int64_t ties = all ? 0 : k - std::count_if(scratch.begin(), scratch.end(), [&](float other) { return other > limit; });
  const float inside = sum(n, [&](std::size_t i) { return top[i] * value(i); });
  float outside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool chosen = near[i] == 0 && (value(i) > limit || (value(i) == limit && ties-- > 0));
    slope[i] = chosen ? 1.0f : 0.0f;
    outside += chosen ? value(i) : 0.0f;
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
  const float next = highest(scratch, k + 1);
  const float kth = *std::min_element(scratch.begin(), scratch.begin() + k);  // those before it are no lower
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
