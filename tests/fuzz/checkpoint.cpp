#include "../../src/train/checkpoint_file.h"
#include "fuzz.h"

using namespace holdfast::train;

void holdfast::fuzz_checkpoint(std::span<const std::byte> input) {
  const CheckpointFile checkpoint = parse_checkpoint(parse_safetensors(input, "input"), "input");
  const Json written = to_json(checkpoint.progress);
  require(to_json(progress_from_json(parse_json(dump_json(written), "written"), "written")) == written);
}
