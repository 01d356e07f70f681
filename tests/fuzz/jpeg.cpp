#include "fuzz.h"
#include "holdfast/core/image.h"

namespace {

// A few kilobytes can hold millions of pixels (more than 2^26 are refused by the reader). Such an image takes a millisecond and
// shows no more than a small one. Both sides stand behind the marker of a frame: FF C0, a length, the bits of a number, height,
// width.
bool claims_many_pixels(std::span<const std::byte> input) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(input[i]); };
  for (std::size_t i = 0; i + 8 < input.size(); ++i) {
    const std::size_t kind = at(i + 1) ^ 0xc0;
    const bool is_frame = at(i) == 0xff && kind < 16 && kind != 4 && kind != 8 && kind != 12;
    const std::size_t pixels = (at(i + 5) * 256 + at(i + 6)) * (at(i + 7) * 256 + at(i + 8));
    if (is_frame && pixels > 1 << 14 && pixels <= 1 << 26) return true;
  }
  return false;
}

}  // namespace

void holdfast::fuzz_jpeg(std::span<const std::byte> input) {
  if (claims_many_pixels(input)) input_error("a large image");
  const Image image = decode_jpeg(input, "input");
  require(image.pixels.size() == static_cast<std::size_t>(image.height * image.width * image.channels));
  if (image.pixels.size() > 4096) return;
  const Image small = resize_and_crop(image, 8);
  require(small.pixels.size() == static_cast<std::size_t>(64 * image.channels));
}
