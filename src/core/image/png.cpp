// PNG by libpng. It reports errors by longjmp, which must not skip destructors: whatever owns memory lives in PngReader or in
// the caller, and the functions that call setjmp hold nothing but plain values.
#include <algorithm>
#include <csetjmp>
#include <cstring>

#include <png.h>

#include "holdfast/core/error.h"
#include "holdfast/core/image.h"
#include "image_parts.h"

namespace holdfast {
namespace {

struct PngReader {
  explicit PngReader(std::span<const std::byte> data) : file(data) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info = png == nullptr ? nullptr : png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, &info, nullptr);
      failure("out of memory for reading a PNG file");
    }
    png_set_read_fn(png, this, on_read);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(reader.message, text, sizeof(reader.message) - 1);
    png_longjmp(png, 1);
  }

  static void on_warning(png_structp, png_const_charp) {}

  static void on_read(png_structp png, png_bytep target, png_size_t count) {
    PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > reader.file.size()) png_error(png, "truncated");
    std::memcpy(target, reader.file.data(), count);
    reader.file = reader.file.subspan(count);
  }

  std::span<const std::byte> file;  // what was not yet read
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[160] = {};
};

bool read_png_header(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_read_info(reader.png, reader.info);
  return true;
}

// Palettes and small bit depths to bytes, 16 bits to the upper 8, alpha dropped.
bool set_transformations(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  const png_byte color = png_get_color_type(reader.png, reader.info);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(reader.png);
  if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(reader.png);
  png_set_strip_16(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_pixels(PngReader& reader, png_bytep pixels, std::size_t height, std::size_t stride, int passes) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t row = 0; row < height; ++row) png_read_row(reader.png, pixels + row * stride, nullptr);
  }
  png_read_end(reader.png, nullptr);
  return true;
}

// Deflate shrinks at most 1032-fold, so a header can be caught lying before memory is taken for its pixels.
void check_plausible(const PngReader& reader, std::size_t file_size, const std::string& where) {
  constexpr std::size_t kMostShrinkage = 1032;
  const std::size_t row_bytes = png_get_rowbytes(reader.png, reader.info);
  const std::size_t height = png_get_image_height(reader.png, reader.info);
  if (row_bytes * height / kMostShrinkage > file_size) {
    input_error("{}: truncated: {} bytes cannot hold {} x {} pixels", where, file_size,
                png_get_image_width(reader.png, reader.info), height);
  }
}

}  // namespace

Image decode_png(std::span<const std::byte> file, const std::string& where, std::int64_t channels) {
  PngReader reader(file);
  if (!read_png_header(reader)) input_error("{}: damaged PNG file: {}", where, reader.message);
  const std::size_t height = png_get_image_height(reader.png, reader.info);
  const std::size_t width = png_get_image_width(reader.png, reader.info);
  check_image_size(height, width, where);
  check_plausible(reader, file.size(), where);
  if (!set_transformations(reader)) input_error("{}: damaged PNG file: {}", where, reader.message);

  const int passes = png_get_interlace_type(reader.png, reader.info) == PNG_INTERLACE_NONE ? 1 : PNG_INTERLACE_ADAM7_PASSES;
  Image image{.height = static_cast<std::int64_t>(height),
              .width = static_cast<std::int64_t>(width),
              .channels = png_get_channels(reader.png, reader.info)};
  HOLDFAST_CHECK(image.channels == 1 || image.channels == 3);
  const std::size_t stride = png_get_rowbytes(reader.png, reader.info);
  image.pixels.resize(height * stride);
  if (!read_pixels(reader, image.pixels.data(), height, stride, passes))
    input_error("{}: damaged PNG file: {}", where, reader.message);
  return with_channels(std::move(image), channels);
}

std::vector<std::byte> encode_png(const Image& image) {
  HOLDFAST_CHECK(image.height > 0 && image.width > 0 && (image.channels == 1 || image.channels == 3));
  HOLDFAST_CHECK(image.pixels.size() == static_cast<std::size_t>(image.height * image.width * image.channels));
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<std::byte> file(size);
  if (png_image_write_to_memory(&header, file.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0) {
    failure("cannot encode a PNG of {} x {} pixels: {}", image.width, image.height, header.message);
  }
  file.resize(size);
  return file;
}

}  // namespace holdfast
