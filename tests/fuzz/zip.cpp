#include "holdfast/core/zip.h"

#include "fuzz.h"

using namespace holdfast;

void holdfast::fuzz_zip(std::span<const std::byte> input) {
  for (const ZipMember& member : parse_zip(input, "input")) require(extract(input, member, "input").size() == member.size);
}
