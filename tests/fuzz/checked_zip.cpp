#include <algorithm>

#include "fuzz.h"
#include "holdfast/core/zip.h"

// What the strict check accepts, the tolerant reader reads too, to the same bytes.
void holdfast::fuzz_checked_zip(std::span<const std::byte> input) {
  for (const ZipMember& member : check_zip(input, "input", 1 << 20)) {
    const Bytes contents = extract(input, member, "input");
    require(contents.size() == member.size);
    if (member.is_stored()) require(std::ranges::equal(contents, packed_bytes(input, member, "input")));
  }
}
