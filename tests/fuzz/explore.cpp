// libFuzzer's entry to the target that the build names. An Error that admits a bug of ours is a finding like a crash.
#include <cstdint>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    holdfast::HOLDFAST_FUZZ_ENTRY({reinterpret_cast<const std::byte*>(data), size});
  } catch (const holdfast::Error& error) {
    holdfast::require(error.kind() != holdfast::ErrorKind::kBug);
  }
  return 0;
}
