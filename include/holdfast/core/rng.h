// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
//
// A stream is named by (seed, purpose, index): what it yields depends on nothing else, not on the order of calls, tiles,
// threads or workers. `purpose` is a short constant such as "er.start"; `index` is the sample's id, or 0.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0);

  std::uint32_t bits();
  // Uniform in [0, 1), 24 bits: the same number in float and in double.
  double uniform();
  double uniform(double low, double high);
  // Standard normal (Box-Muller).
  double normal();
  // Uniform in {0, ..., bound-1} without bias; bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // 0..count-1 in random order (Fisher-Yates).
  std::vector<std::int64_t> permutation(std::int64_t count);

 private:
  void refill();

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  double spare_ = 0;
  bool has_spare_ = false;
};

// One block of the generator, for tests against the published vectors.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// A seed derived from another one, for parts that take a seed of their own.
std::uint64_t derived_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0);

}  // namespace holdfast
