// Binary PGM (P5) and PPM (P6), http://netpbm.sourceforge.net/doc/ppm.html
#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/image.h"
#include "image_parts.h"

namespace holdfast {
namespace {

bool is_space(char letter) {
  return letter == ' ' || (letter >= '\t' && letter <= '\r');
}
bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// The numbers of the header, between which there may be blanks and comments from # to the end of the line.
class PpmHeaderReader {
 public:
  PpmHeaderReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  std::uint64_t number(const char* what) {
    skip_blanks_and_comments();
    if (!is_digit(peek())) input_error("{}: the header has no {}", where_, what);
    std::uint64_t value = 0;
    for (; is_digit(peek()); ++place_) {
      value = 10 * value + static_cast<std::uint64_t>(peek() - '0');
      if (value > std::uint64_t{1} << 32) input_error("{}: the {} in the header is too large", where_, what);
    }
    return value;
  }

  // Exactly one blank ends the header: the next byte is a pixel, whatever it is.
  std::size_t end() {
    if (!is_space(peek())) input_error("{}: the header is not followed by a blank", where_);
    return place_ + 1;
  }

 private:
  char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }

  void skip_blanks_and_comments() {
    while (is_space(peek()) || peek() == '#') {
      if (peek() == '#')
        place_ = std::min(text_.size(), text_.find('\n', place_));
      else
        ++place_;
    }
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t place_ = 2;  // after P5 or P6
};

// Scales samples of 0 to `maximum` to 0 to 255, rounded.
void rescale(std::vector<std::uint8_t>& samples, std::uint32_t maximum, const std::string& where) {
  for (std::uint8_t& sample : samples) {
    if (sample > maximum) input_error("{}: a sample of {} is above the header's maximum of {}", where, sample, maximum);
    sample = static_cast<std::uint8_t>((sample * 510U + maximum) / (2 * maximum));
  }
}

}  // namespace

Image parse_ppm(std::span<const std::byte> file, const std::string& where) {
  const std::string_view text = as_text(file);
  if (!text.starts_with("P5") && !text.starts_with("P6")) input_error("{}: not a binary PPM or PGM file", where);
  PpmHeaderReader header(text, where);
  const std::uint64_t width = header.number("width");
  const std::uint64_t height = header.number("height");
  const std::uint64_t maximum = header.number("maximum");
  const std::size_t start = header.end();
  check_image_size(height, width, where);
  if (maximum < 1 || maximum > 255) input_error("{}: a maximum of {} is not supported; 1 to 255 are", where, maximum);

  const std::uint64_t channels = text[1] == '6' ? 3 : 1;
  const std::uint64_t needed = height * width * channels;
  const std::string_view content = text.substr(start);
  if (content.size() < needed)
    input_error("{}: truncated: {} x {} pixels need {} bytes, {} are there", where, width, height, needed, content.size());
  Image image{.height = static_cast<std::int64_t>(height),
              .width = static_cast<std::int64_t>(width),
              .channels = static_cast<std::int64_t>(channels)};
  image.pixels.assign(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(needed));
  if (maximum != 255) rescale(image.pixels, static_cast<std::uint32_t>(maximum), where);
  return image;
}

}  // namespace holdfast
