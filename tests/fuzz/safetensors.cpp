#include "holdfast/core/safetensors.h"

#include "fuzz.h"

void holdfast::fuzz_safetensors(std::span<const std::byte> input) {
  const TensorFile file = parse_safetensors(input, "input");
  const TensorFile again = parse_safetensors(format_safetensors(file), "written");
  require(again.arrays.size() == file.arrays.size() && again.metadata.size() == file.metadata.size());
  for (const auto& [name, array] : file.arrays) {
    const RawArray* found = again.find(name);
    require(found != nullptr && found->type == array.type && found->shape == array.shape && found->bytes == array.bytes);
  }
}
