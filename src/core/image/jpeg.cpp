// JPEG by libjpeg-turbo. It reports errors by a callback that must not return: we longjmp out of it, which must not skip
// destructors, so the functions that call setjmp hold nothing but plain values.
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>
// After jpeglib.h, whose types it uses.
#include <jerror.h>

#include "holdfast/core/error.h"
#include "holdfast/core/image.h"
#include "image_parts.h"

namespace holdfast {
namespace {

struct JpegReader {
  explicit JpegReader(std::span<const std::byte> data) : file(data) {
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = on_error;
    errors.emit_message = on_message;
    errors.output_message = [](j_common_ptr) {};
    jpeg.client_data = this;
    progress.progress_monitor = on_progress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  static JpegReader& of(j_common_ptr jpeg) { return *static_cast<JpegReader*>(jpeg->client_data); }

  [[noreturn]] static void on_error(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, of(jpeg).message);
    std::longjmp(of(jpeg).escape, 1);
  }

  // Level -1 is a warning. Those that mean lost pixels are errors to us; oddities of writers, such as stray bytes between
  // markers, are not.
  static void on_message(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    switch (jpeg->err->msg_code) {
      case JWRN_JPEG_EOF:
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_ARITH_BAD_CODE:
      case JWRN_MUST_RESYNC:
      case JWRN_BOGUS_PROGRESSION:
        on_error(jpeg);
      default:
        return;
    }
  }

  // A progressive file of a few kilobytes can ask for thousands of passes over a large image.
  static void on_progress(j_common_ptr jpeg) {
    constexpr int kMostScans = 500;
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
    std::snprintf(of(jpeg).message, sizeof(message), "more than %d scans", kMostScans);
    std::longjmp(of(jpeg).escape, 1);
  }

  std::span<const std::byte> file;
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = {};
};

bool read_jpeg_header(JpegReader& reader) {
  if (setjmp(reader.escape)) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.jpeg.progress = &reader.progress;
  jpeg_mem_src(&reader.jpeg, reinterpret_cast<const unsigned char*>(reader.file.data()), reader.file.size());
  jpeg_read_header(&reader.jpeg, TRUE);
  const J_COLOR_SPACE stored = reader.jpeg.jpeg_color_space;
  const bool four_inks = stored == JCS_CMYK || stored == JCS_YCCK;
  reader.jpeg.out_color_space = stored == JCS_GRAYSCALE ? JCS_GRAYSCALE : four_inks ? JCS_CMYK : JCS_RGB;
  return true;
}

bool read_pixels(JpegReader& reader, JSAMPROW pixels, std::size_t stride) {
  if (setjmp(reader.escape)) return false;
  jpeg_start_decompress(&reader.jpeg);
  while (reader.jpeg.output_scanline < reader.jpeg.output_height) {
    JSAMPROW row = pixels + reader.jpeg.output_scanline * stride;
    jpeg_read_scanlines(&reader.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&reader.jpeg);
  return true;
}

// A Huffman code spends at least one bit on every block of 8 x 8 pixels, so a header can be caught lying before memory
// is taken for its pixels. Arithmetic coding has no such limit.
void check_plausible(const JpegReader& reader, const std::string& where) {
  constexpr std::uint64_t kMostPixelsPerByte = std::uint64_t{8} * 64;
  const std::uint64_t pixels = std::uint64_t{reader.jpeg.image_width} * reader.jpeg.image_height;
  if (reader.jpeg.arith_code || pixels / kMostPixelsPerByte <= reader.file.size()) return;
  input_error("{}: truncated: {} bytes cannot hold {} x {} pixels", where, reader.file.size(), reader.jpeg.image_width,
              reader.jpeg.image_height);
}

// Adobe's programs, which write nearly all of these files, store inks inverted: 255 is no ink.
std::vector<std::uint8_t> cmyk_to_rgb(const std::vector<std::uint8_t>& inks, bool inverted) {
  std::vector<std::uint8_t> rgb(inks.size() / 4 * 3);
  for (std::size_t i = 0; i < inks.size() / 4; ++i) {
    const auto paper = [&](std::size_t ink) {
      return static_cast<unsigned>(inverted ? inks[4 * i + ink] : 255 - inks[4 * i + ink]);
    };
    for (std::size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<std::uint8_t>((paper(c) * paper(3) + 127) / 255);
  }
  return rgb;
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> file, const std::string& where, std::int64_t channels) {
  JpegReader reader(file);
  if (!read_jpeg_header(reader)) input_error("{}: damaged JPEG file: {}", where, reader.message);
  check_image_size(reader.jpeg.image_height, reader.jpeg.image_width, where);
  check_plausible(reader, where);

  Image image{.height = reader.jpeg.image_height, .width = reader.jpeg.image_width};
  const J_COLOR_SPACE colors = reader.jpeg.out_color_space;
  const std::size_t components = colors == JCS_GRAYSCALE ? 1 : colors == JCS_RGB ? 3 : 4;
  const std::size_t stride = reader.jpeg.image_width * components;
  image.pixels.resize(reader.jpeg.image_height * stride);
  if (!read_pixels(reader, image.pixels.data(), stride)) input_error("{}: damaged JPEG file: {}", where, reader.message);
  if (components == 4) image.pixels = cmyk_to_rgb(image.pixels, reader.jpeg.saw_Adobe_marker);
  image.channels = components == 1 ? 1 : 3;
  return with_channels(std::move(image), channels);
}

}  // namespace holdfast
