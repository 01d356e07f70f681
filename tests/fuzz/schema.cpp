#include "holdfast/data/schema.h"

#include "fuzz.h"

using namespace holdfast::data;

void holdfast::fuzz_schema(std::span<const std::byte> input) {
  const Schema schema = schema_from_json(parse_json(std::string(as_text(input)), "input"), "input");
  const Json written = to_json(schema);
  require(to_json(schema_from_json(written, "written")) == written);
}
