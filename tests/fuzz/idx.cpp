#include "holdfast/core/idx.h"

#include "fuzz.h"

void holdfast::fuzz_idx(std::span<const std::byte> input) {
  const RawArray array = parse_idx(input, "input");
  require(array.bytes.size() == static_cast<std::size_t>(array.count()) * size_of(array.type));
}
