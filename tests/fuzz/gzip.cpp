#include "fuzz.h"

void holdfast::fuzz_gzip(std::span<const std::byte> input) {
  constexpr std::size_t kLimit = 1 << 16;
  require(gunzip(input, "input", kLimit).size() <= kLimit);
}
