#include "fuzz.h"
#include "holdfast/core/image.h"

void holdfast::fuzz_ppm(std::span<const std::byte> input) {
  const Image image = parse_ppm(input, "input");
  require(image.pixels.size() == static_cast<std::size_t>(image.height * image.width * image.channels));
}
