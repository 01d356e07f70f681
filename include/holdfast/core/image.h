// Images: PPM (P5, P6), PNG and JPEG in; PNG out. 8 bits a channel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace holdfast {

struct Image {
  std::int64_t height = 0, width = 0;
  std::int64_t channels = 3;         // 1 or 3
  std::vector<std::uint8_t> pixels;  // row-major, channels interleaved
};

// Limits are checked against the header before memory is taken: at most 2^26 pixels (8192 x 8192).
Image parse_ppm(std::span<const std::byte> file, const std::string& where);
// `channels` 1 or 3 converts; 0 keeps what the file has (alpha is dropped, palettes are expanded).
Image decode_png(std::span<const std::byte> file, const std::string& where, std::int64_t channels = 0);
Image decode_jpeg(std::span<const std::byte> file, const std::string& where, std::int64_t channels = 0);
// By the file's first bytes. Throws kInput for anything else, and for truncated files.
Image decode_image(std::span<const std::byte> file, const std::string& where, std::int64_t channels = 0);
Image read_image(const std::string& path, std::int64_t channels = 0);

std::vector<std::byte> encode_png(const Image& image);
void write_png(const std::string& path, const Image& image);  // atomic

// Shorter side to `size` with Pillow's antialiased bilinear filter, then the middle size x size.
Image resize_and_crop(const Image& image, std::int64_t size);
// The whole image to height x width, the same filter.
Image resize(const Image& image, std::int64_t height, std::int64_t width);

}  // namespace holdfast
