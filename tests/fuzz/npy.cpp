#include "holdfast/core/npy.h"

#include "fuzz.h"

void holdfast::fuzz_npy(std::span<const std::byte> input) {
  const RawArray array = parse_npy(input, "input");
  const RawArray again = parse_npy(format_npy(array), "written");
  require(again.type == array.type && again.shape == array.shape && again.bytes == array.bytes);
}
