#include "holdfast/report/pictures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "arrays.h"
#include "canvas.h"
#include "grids.h"

namespace holdfast {
namespace {

constexpr Colour kPaper{255, 255, 255};
constexpr Colour kInk{29, 39, 48};
constexpr Colour kBar{31, 111, 235};
constexpr Colour kNegativeBar{214, 69, 61};
constexpr std::int64_t kMarginPixels = 12;
constexpr std::int64_t kTextSize = 13;

// Input and map side by side, enlarged to about 280 pixels.
Image draw_grid(std::span<const double> input, std::span<const double> map, const Layout& layout) {
  const Image left = draw_input(layout, input);
  const Image right = draw_heat(layout, fold(layout, map));
  const std::int64_t scale = std::max<std::int64_t>(1, 280 / std::max(left.width, left.height));
  const std::int64_t width = left.width * scale, height = left.height * scale;
  Canvas canvas(height + 2 * kMarginPixels, 2 * width + 3 * kMarginPixels, kPaper);
  canvas.picture(kMarginPixels, kMarginPixels, left, scale);
  canvas.picture(kMarginPixels, width + 2 * kMarginPixels, right, scale);
  return canvas.image();
}

// The features with the largest magnitude, the longest bar first; signed maps keep their sign as colour.
Image draw_bars(std::span<const double> map, const Schema& schema) {
  constexpr std::size_t kMost = 24;
  constexpr std::int64_t kRow = 22, kLongest = 320, kNumber = 80;
  std::vector<std::int64_t> order(map.size());
  std::iota(order.begin(), order.end(), 0);
  const auto magnitude = [&](std::int64_t feature) { return std::abs(map[static_cast<std::size_t>(feature)]); };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return magnitude(a) > magnitude(b); });
  order.resize(std::min(order.size(), kMost));
  std::int64_t names = 0;
  for (const std::int64_t feature : order) names = std::max(names, Canvas::text_width(schema.feature_name(feature), kTextSize));

  const double longest = order.empty() || magnitude(order[0]) == 0 ? 1 : magnitude(order[0]);
  Canvas canvas(static_cast<std::int64_t>(order.size()) * kRow + 2 * kMarginPixels,
                names + kLongest + kNumber + 4 * kMarginPixels, kPaper);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t top = kMarginPixels + static_cast<std::int64_t>(i) * kRow, middle = top + kRow / 2;
    const std::string name = schema.feature_name(order[i]);
    const double value = map[static_cast<std::size_t>(order[i])];
    const std::int64_t length = std::max<std::int64_t>(1, std::lround(static_cast<double>(kLongest) * std::abs(value) / longest));
    canvas.text(middle, kMarginPixels + names - Canvas::text_width(name, kTextSize), name, kTextSize, kInk);
    canvas.rectangle(top + 3, names + 2 * kMarginPixels, kRow - 6, length, value < 0 ? kNegativeBar : kBar);
    canvas.text(middle, names + 2 * kMarginPixels + length + 6, fmt::format("{:.3g}", value), kTextSize, kInk);
  }
  return canvas.image();
}

}  // namespace

Image draw_map(const RawArray& input, const RawArray& map, const Schema& schema) {
  const std::vector<double> map_values = to_doubles(map, "map");
  if (!is_drawable(schema.layout)) return draw_bars(map_values, schema);
  return draw_grid(to_doubles(input, "input"), map_values, schema.layout);
}

void write_map_png(const std::string& path, const RawArray& input, const RawArray& map, const Schema& schema) {
  write_png(path, draw_map(input, map, schema));
}

}  // namespace holdfast
