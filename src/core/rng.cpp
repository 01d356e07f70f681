#include "holdfast/core/rng.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "holdfast/core/error.h"
#include "philox.h"

namespace holdfast {
namespace {

// SplitMix64's finaliser: every bit of the result depends on every bit of the input.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

// FNV-1a; purposes are short constants of ours, so collisions are not a concern.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xCBF29CE484222325ULL;
  for (const char letter : text) value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001B3ULL;
  return value;
}

}  // namespace

std::array<std::uint32_t, 2> philox::stream_key(std::uint64_t seed, std::string_view purpose) {
  const std::uint64_t key = mix(seed ^ hash(purpose));
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < philox::kRounds; ++round) {
    const std::uint64_t left = std::uint64_t{philox::kLeft} * counter[0];
    const std::uint64_t right = std::uint64_t{philox::kRight} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += philox::kKeyStep[0];
    key[1] += philox::kKeyStep[1];
  }
  return counter;
}

std::uint64_t derived_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  return mix(mix(seed ^ hash(purpose)) + index);
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t index)
    : key_(philox::stream_key(seed, purpose)) {
  counter_ = {0, 0, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)};
}

void RandomStream::refill() {
  block_ = philox4x32(counter_, key_);
  if (++counter_[0] == 0) ++counter_[1];
  used_ = 0;
}

std::uint32_t RandomStream::bits() {
  if (used_ == 4) refill();
  return block_[static_cast<std::size_t>(used_++)];
}

double RandomStream::uniform() {
  return (bits() >> 8) * 0x1p-24;
}

double RandomStream::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

double RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  // 1 - u lies in (0, 1]: the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  HOLDFAST_CHECK(bound > 0);
  while (true) {
    const std::uint64_t high = bits();
    const std::uint64_t value = (high << 32) | bits();
    // Values below (0 - bound) % bound would make small results a little more likely. It is less than bound: most values need not
    // ask for it.
    if (value >= bound || value >= (0 - bound) % bound) return value % bound;
  }
}

std::vector<std::int64_t> RandomStream::permutation(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t last = order.size(); last > 1; --last) std::swap(order[last - 1], order[below(last)]);
  return order;
}

}  // namespace holdfast
