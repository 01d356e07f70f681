#include "fuzz.h"
#include "holdfast/core/image.h"

void holdfast::fuzz_png(std::span<const std::byte> input) {
  const Image image = decode_png(input, "input");
  require(image.pixels.size() == static_cast<std::size_t>(image.height * image.width * image.channels));
  if (image.pixels.size() > 4096) return;  // writing is slow, and small images show as much
  const Image again = decode_image(encode_png(image), "written");
  require(again.pixels == image.pixels && again.height == image.height && again.channels == image.channels);
}
