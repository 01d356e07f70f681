#include "fuzz.h"
#include "holdfast/core/image.h"

void holdfast::fuzz_jpeg(std::span<const std::byte> input) {
  const Image image = decode_jpeg(input, "input");
  require(image.pixels.size() == static_cast<std::size_t>(image.height * image.width * image.channels));
  if (image.pixels.size() > 4096) return;
  const Image small = resize_and_crop(image, 8);
  require(small.pixels.size() == static_cast<std::size_t>(64 * image.channels));
}
