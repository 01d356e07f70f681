#include "chance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/core/rng.h"

namespace holdfast::metric {
namespace {

// Hashes the bits of the values with FNV-1a.
std::uint64_t key_of_map(std::span<const double> values) {
  std::uint64_t key = 0xCBF29CE484222325ULL;
  for (const double value : values) key = (key ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001B3ULL;
  return key;
}

}  // namespace

double chance_of_being_near(const FeatureSet& set, const Neighborhood& near, std::int64_t k) {
  const std::vector<std::int64_t> members = set.members();
  const std::int64_t features = set.rows() * set.width();
  std::vector<double> missed{1};  // by size of the window: C(n-m-1, k) / C(n-m, k) = (n-k-m) / (n-m)
  double sum = 0;
  for (const std::int64_t member : members) {
    const auto size = static_cast<std::size_t>(near.window_size(member));
    while (missed.size() <= size) {
      const auto m = static_cast<std::int64_t>(missed.size()) - 1;
      const std::int64_t left = std::max<std::int64_t>(0, features - k - m);
      missed.push_back(missed.back() * static_cast<double>(left) / static_cast<double>(features - m));
    }
    sum += 1 - missed[size];
  }
  return sum / static_cast<double>(members.size());
}

double sampled_chance(const MapView& original, const std::function<double(std::span<const std::uint32_t> order)>& value) {
  const std::int64_t draws = std::clamp<std::int64_t>(16384 / original.size(), 4, 512);
  RandomStream stream(key_of_map(original.values), "chance");
  double sum = 0;
  std::int64_t defined = 0;
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    const std::vector<std::int64_t> permutation = stream.permutation(original.size());
    const double one = value(std::vector<std::uint32_t>(permutation.begin(), permutation.end()));
    if (std::isnan(one)) continue;
    sum += one;
    ++defined;
  }
  return defined == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(defined);
}

double sampled_chance_of_values(const MapView& original, const std::function<double(std::span<const double> map)>& value) {
  std::vector<double> shuffled(original.values.size());
  return sampled_chance(original, [&](std::span<const std::uint32_t> order) {
    for (std::size_t i = 0; i < order.size(); ++i) shuffled[i] = original.values[order[i]];
    return value(shuffled);
  });
}

}  // namespace holdfast::metric
