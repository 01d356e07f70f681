// Pillow's antialiased bilinear filter (Resample.c): a triangle whose half width is the ratio of the sizes when shrinking
// and 1 when growing, first along rows, then along columns, each with 22-bit fixed-point weights. The result equals
// Pillow's up to version 12 bit for bit; later ones sometimes start with the columns and differ by one level.
#include <algorithm>
#include <cmath>

#include "holdfast/core/error.h"
#include "holdfast/core/image.h"

namespace holdfast {
namespace {

constexpr int kWeightBits = 22;

// The source pixels that make one target pixel.
struct Window {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Window> make_windows(std::int64_t source, std::int64_t target) {
  const double ratio = static_cast<double>(source) / static_cast<double>(target);
  const double support = std::max(ratio, 1.0);
  std::vector<Window> windows(static_cast<std::size_t>(target));
  std::vector<double> weights;
  for (std::int64_t i = 0; i < target; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * ratio;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const auto end = std::min(source, static_cast<std::int64_t>(center + support + 0.5));
    weights.clear();
    double sum = 0;
    for (std::int64_t x = first; x < end; ++x) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(x) - center + 0.5) / support)));
      sum += weights.back();
    }
    Window& window = windows[static_cast<std::size_t>(i)];
    window.first = first;
    for (const double weight : weights)
      window.weights.push_back(static_cast<std::int32_t>(0.5 + weight / sum * (1 << kWeightBits)));
  }
  return windows;
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

template <int kChannels>
void resize_row(const std::uint8_t* source, const std::vector<Window>& windows, std::uint8_t* target) {
  for (const Window& window : windows) {
    std::int32_t sums[kChannels];
    std::fill(std::begin(sums), std::end(sums), 1 << (kWeightBits - 1));
    const std::uint8_t* pixel = source + window.first * kChannels;
    for (const std::int32_t weight : window.weights) {
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weight;
      pixel += kChannels;
    }
    for (int c = 0; c < kChannels; ++c) *target++ = to_byte(sums[c]);
  }
}

Image resize_width(const Image& image, std::int64_t width) {
  if (width == image.width) return image;
  Image result{.height = image.height, .width = width, .channels = image.channels};
  result.pixels.resize(static_cast<std::size_t>(image.height * width * image.channels));
  const std::vector<Window> windows = make_windows(image.width, width);
  const auto row_function = image.channels == 3 ? resize_row<3> : resize_row<1>;
  for (std::int64_t row = 0; row < image.height; ++row) {
    row_function(image.pixels.data() + row * image.width * image.channels, windows,
                 result.pixels.data() + row * width * image.channels);
  }
  return result;
}

Image resize_height(Image image, std::int64_t height) {
  if (height == image.height) return image;
  const std::int64_t stride = image.width * image.channels;
  Image result{.height = height, .width = image.width, .channels = image.channels};
  result.pixels.resize(static_cast<std::size_t>(height * stride));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(stride));
  std::uint8_t* target = result.pixels.data();
  for (const Window& window : make_windows(image.height, height)) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    const std::uint8_t* source = image.pixels.data() + window.first * stride;
    for (const std::int32_t weight : window.weights) {
      for (std::int32_t& sum : sums) sum += *source++ * weight;
    }
    for (const std::int32_t sum : sums) *target++ = to_byte(sum);
  }
  return result;
}

Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width) {
  Image result{.height = height, .width = width, .channels = image.channels};
  for (std::int64_t row = top; row < top + height; ++row) {
    const auto start = image.pixels.begin() + (row * image.width + left) * image.channels;
    result.pixels.insert(result.pixels.end(), start, start + width * image.channels);
  }
  return result;
}

void check_target_size(std::int64_t height, std::int64_t width) {
  constexpr std::int64_t kLongestSide = 1 << 20, kMostPixels = 1 << 28;
  if (height < 1 || width < 1 || height > kLongestSide || width > kLongestSide || height * width > kMostPixels) {
    usage_error("cannot resize an image to {} x {} pixels: a side is 1 to 2^20, and at most 2^28 pixels", width, height);
  }
}

}  // namespace

Image resize(const Image& image, std::int64_t height, std::int64_t width) {
  check_target_size(height, width);
  HOLDFAST_CHECK(image.height > 0 && image.width > 0 && (image.channels == 1 || image.channels == 3));
  return resize_height(resize_width(image, width), height);
}

Image resize_and_crop(const Image& image, std::int64_t size) {
  check_target_size(size, size);
  // The longer side is rounded down and the middle half to even, as torchvision's Resize and CenterCrop do.
  const std::int64_t shorter = std::min(image.height, image.width);
  HOLDFAST_CHECK(shorter > 0);
  const std::int64_t height = size * image.height / shorter;
  const std::int64_t width = size * image.width / shorter;
  const Image resized = resize(image, height, width);
  const auto margin = [&](std::int64_t side) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(side - size) / 2));
  };
  return crop(resized, margin(height), margin(width), size, size);
}

}  // namespace holdfast
