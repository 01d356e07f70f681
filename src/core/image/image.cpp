#include "holdfast/core/image.h"

#include <string_view>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "image_parts.h"

namespace holdfast {
namespace {

bool starts_with(std::span<const std::byte> file, std::string_view magic) {
  return as_text(file).starts_with(magic);
}

std::vector<std::uint8_t> grey_to_rgb(const std::vector<std::uint8_t>& grey) {
  std::vector<std::uint8_t> rgb(grey.size() * 3);
  for (std::size_t i = 0; i < grey.size(); ++i) rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = grey[i];
  return rgb;
}

std::vector<std::uint8_t> rgb_to_grey(const std::vector<std::uint8_t>& rgb) {
  // 0.299, 0.587 and 0.114 in 16-bit fixed point.
  constexpr std::uint32_t kRed = 19595, kGreen = 38470, kBlue = 7471, kHalf = 1 << 15;
  std::vector<std::uint8_t> grey(rgb.size() / 3);
  for (std::size_t i = 0; i < grey.size(); ++i) {
    grey[i] = static_cast<std::uint8_t>((kRed * rgb[3 * i] + kGreen * rgb[3 * i + 1] + kBlue * rgb[3 * i + 2] + kHalf) >> 16);
  }
  return grey;
}

}  // namespace

void check_image_size(std::uint64_t height, std::uint64_t width, const std::string& where) {
  constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;
  if (height == 0 || width == 0) input_error("{}: the image is empty ({} x {} pixels)", where, width, height);
  if (height > kMostPixels / width) input_error("{}: {} x {} pixels are more than the limit of 2^26", where, width, height);
}

Image with_channels(Image image, std::int64_t channels) {
  HOLDFAST_CHECK(channels == 0 || channels == 1 || channels == 3);
  if (channels == 0 || channels == image.channels) return image;
  image.pixels = channels == 3 ? grey_to_rgb(image.pixels) : rgb_to_grey(image.pixels);
  image.channels = channels;
  return image;
}

Image decode_image(std::span<const std::byte> file, const std::string& where, std::int64_t channels) {
  if (starts_with(file, "\x89PNG")) return decode_png(file, where, channels);
  if (starts_with(file, "\xff\xd8")) return decode_jpeg(file, where, channels);
  if (starts_with(file, "P5") || starts_with(file, "P6")) return with_channels(parse_ppm(file, where), channels);
  input_error("{}: neither PNG, JPEG nor binary PPM or PGM", where);
}

Image read_image(const std::string& path, std::int64_t channels) {
  return decode_image(read_bytes(path), path, channels);
}

void write_png(const std::string& path, const Image& image) {
  write_atomic(path, encode_png(image));
}

}  // namespace holdfast
