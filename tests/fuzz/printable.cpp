#include "holdfast/core/printable.h"

#include "fuzz.h"

void holdfast::fuzz_printable(std::span<const std::byte> input) {
  const std::string text(as_text(input)), whole = valid_utf8(text), shown = printable(text);
  require(valid_utf8(whole) == whole && printable(shown) == shown && valid_utf8(shown) == shown);
}
