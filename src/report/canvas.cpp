#include "canvas.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <ft2build.h>
#include FT_FREETYPE_H

#include "holdfast/core/files.h"
#include "holdfast/core/log.h"

namespace holdfast::report {
namespace {

// HOLDFAST_FONT, else what Debian and its relatives install.
std::string font_path() {
  if (const char* chosen = std::getenv("HOLDFAST_FONT")) return chosen;
  for (const char* path :
       {"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/TTF/DejaVuSans.ttf", "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf"}) {
    if (file_exists(path)) return path;
  }
  return "";
}

// FreeType's library with one face, made on first use. Drawing is not parallel: one lock for all of it.
class Font {
 public:
  static Font& instance() {
    static Font font;
    return font;
  }

  // Calls glyph(bitmap, left, top) for each letter with the pen's place; returns the advance. Bytes beyond ASCII are decoded as
  // UTF-8.
  template <class Glyph>
  std::int64_t each_glyph(const std::string& text, std::int64_t size, const Glyph& glyph) {
    const std::lock_guard lock(mutex_);
    if (face_ == nullptr) return 0;
    FT_Set_Pixel_Sizes(face_, 0, static_cast<FT_UInt>(size));
    std::int64_t pen = 0;
    for (std::size_t i = 0; i < text.size();) {
      if (FT_Load_Char(face_, next_character(text, i), FT_LOAD_RENDER) != 0) continue;
      glyph(face_->glyph->bitmap, pen + face_->glyph->bitmap_left, std::int64_t{face_->glyph->bitmap_top});
      pen += face_->glyph->advance.x >> 6;
    }
    return pen;
  }

 private:
  Font() {
    const std::string path = font_path();
    if (FT_Init_FreeType(&library_) != 0 || path.empty() || FT_New_Face(library_, path.c_str(), 0, &face_) != 0) {
      face_ = nullptr;
      log_warning("no font was found (install fonts-dejavu-core or set HOLDFAST_FONT): pictures have no text");
    }
  }

  static FT_ULong next_character(const std::string& text, std::size_t& at) {
    const unsigned char first = static_cast<unsigned char>(text[at++]);
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
    FT_ULong code = more == 0 ? first : first & (0x3FU >> more);
    for (int i = 0; i < more && at < text.size(); ++i) code = code << 6 | (static_cast<unsigned char>(text[at++]) & 0x3FU);
    return code;
  }

  std::mutex mutex_;
  FT_Library library_ = nullptr;
  FT_Face face_ = nullptr;
};

}  // namespace

Canvas::Canvas(std::int64_t height, std::int64_t width, Colour background)
    : image_{.height = height, .width = width, .channels = 3, .pixels = {}} {
  image_.pixels.resize(static_cast<std::size_t>(3 * height * width));
  rectangle(0, 0, height, width, background);
}

void Canvas::blend(std::int64_t row, std::int64_t column, Colour colour, int opacity) {
  if (row < 0 || row >= image_.height || column < 0 || column >= image_.width) return;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::uint8_t& value = image_.pixels[static_cast<std::size_t>(3 * (row * image_.width + column)) + channel];
    value = static_cast<std::uint8_t>((colour[channel] * opacity + value * (255 - opacity)) / 255);
  }
}

void Canvas::rectangle(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Colour colour) {
  for (std::int64_t row = top; row < top + height; ++row) {
    for (std::int64_t column = left; column < left + width; ++column) blend(row, column, colour, 255);
  }
}

void Canvas::picture(std::int64_t top, std::int64_t left, const Image& image, std::int64_t scale) {
  for (std::int64_t row = 0; row < image.height; ++row) {
    for (std::int64_t column = 0; column < image.width; ++column) {
      const std::size_t at = static_cast<std::size_t>(3 * (row * image.width + column));
      rectangle(top + row * scale, left + column * scale, scale, scale,
                {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]});
    }
  }
}

std::int64_t Canvas::text(std::int64_t middle, std::int64_t left, const std::string& text, std::int64_t size, Colour colour) {
  const std::int64_t baseline = middle + (size * 3 + 4) / 8;  // capitals are about three quarters of the size
  return Font::instance().each_glyph(text, size, [&](const FT_Bitmap& bitmap, std::int64_t x, std::int64_t y) {
    for (unsigned row = 0; row < bitmap.rows; ++row) {
      for (unsigned column = 0; column < bitmap.width; ++column) {
        blend(baseline - y + row, left + x + column, colour, bitmap.buffer[row * static_cast<unsigned>(bitmap.pitch) + column]);
      }
    }
  });
}

std::int64_t Canvas::text_width(const std::string& text, std::int64_t size) {
  return Font::instance().each_glyph(text, size, [](const FT_Bitmap&, std::int64_t, std::int64_t) {});
}

}  // namespace holdfast::report
