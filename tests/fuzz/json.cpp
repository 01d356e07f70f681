#include "holdfast/core/json.h"

#include "fuzz.h"

void holdfast::fuzz_json(std::span<const std::byte> input) {
  const std::string written = dump_json(parse_json(std::string(as_text(input)), "input"));
  require(dump_json(parse_json(written, "written")) == written);
}
