// A picture to draw on: rectangles, other pictures and text.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/core/image.h"
#include "palette.h"

namespace holdfast::report {

class Canvas {
 public:
  Canvas(std::int64_t height, std::int64_t width, Colour background);

  void rectangle(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, Colour colour);
  // Enlarged `scale` times, each pixel a square.
  void picture(std::int64_t top, std::int64_t left, const Image& image, std::int64_t scale);
  // Left end and middle of the line; returns the width. Draws nothing when no font is installed.
  std::int64_t text(std::int64_t middle, std::int64_t left, const std::string& text, std::int64_t size, Colour colour);
  static std::int64_t text_width(const std::string& text, std::int64_t size);

  const Image& image() const { return image_; }

 private:
  void blend(std::int64_t row, std::int64_t column, Colour colour, int opacity);
  Image image_;
};

}  // namespace holdfast::report
