#include "holdfast/data/tar.h"

#include "fuzz.h"

using namespace holdfast::data;

void holdfast::fuzz_tar(std::span<const std::byte> input) {
  for (const TarMember& member : parse_tar(input, "input")) {
    // The contents lie inside the archive.
    if (member.data.empty()) continue;
    require(member.data.data() >= input.data() && member.data.data() + member.data.size() <= input.data() + input.size());
  }
}
