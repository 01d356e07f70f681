#include "holdfast/report/pictures.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "arrays.h"
#include "canvas.h"
#include "grids.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::report {
namespace {

constexpr Colour kPaper{255, 255, 255};
constexpr Colour kInk{29, 39, 48};
constexpr Colour kFaint{110, 120, 130};
constexpr Colour kMagnitude{31, 111, 235};
constexpr std::int64_t kMarginPixels = 12;
constexpr std::int64_t kTextSize = 13;
constexpr std::int64_t kLine = 20;  // a line of text

struct Panel {
  std::string title;
  Image image;
};

// Draws the colours from the smallest to the largest value, with the values at the ends.
void draw_legend(Canvas& canvas, std::int64_t middle, std::int64_t left, std::int64_t width, const FoldedMap& map) {
  const std::string low = map.with_signs ? fmt::format("{:.2g}", -map.largest) : "0";
  const std::string high = fmt::format("{:.2g}{}", map.largest, map.cut ? "+" : "");
  const std::int64_t from = left + Canvas::text_width(low, kTextSize) + 6;
  const std::int64_t to = left + width - Canvas::text_width(high, kTextSize) - 6;
  canvas.text(middle, left, low, kTextSize, kInk);
  canvas.text(middle, to + 6, high, kTextSize, kInk);
  for (std::int64_t x = from; x < to; ++x) {
    const double share = static_cast<double>(x - from) / static_cast<double>(to - from);
    // Even in the value, as the map's colours are: by its root.
    const double value = map.with_signs ? 2 * share - 1 : share;
    const double root = std::copysign(std::sqrt(std::abs(value)), value);
    canvas.rectangle(middle - 5, x, 10, 1, map.with_signs ? diverging(root) : sequential(root));
  }
}

// Panels side by side under their titles, enlarged to about 280 pixels.
Image draw_grid(std::span<const double> input, std::span<const double> map, const Layout& layout, const PictureOptions& options) {
  const FoldedMap folded = fold_for_picture(layout, map);
  std::vector<Panel> panels{{"input", draw_input(layout, input)},
                            {folded.with_signs ? "map, signed" : "map", draw_map_grid(layout, folded)},
                            {"map over the input", draw_overlay(layout, input, folded)}};
  if (options.top > 0) {
    const std::int64_t top = std::min(options.top, layout.features());
    panels.push_back({fmt::format("top {}", top), draw_marked(layout, input, top_k_set(fold(layout, map), top))});
  }
  const Image& first = panels[0].image;
  const std::int64_t scale = std::max<std::int64_t>(1, 280 / std::max(first.width, first.height));
  const std::int64_t width = std::max<std::int64_t>(first.width * scale, 150), height = first.height * scale;
  const auto count = static_cast<std::int64_t>(panels.size());
  Canvas canvas(height + 2 * kLine + 2 * kMarginPixels, count * width + (count + 1) * kMarginPixels, kPaper);
  std::int64_t left = kMarginPixels;
  for (const Panel& panel : panels) {
    canvas.text(kMarginPixels + kLine / 2, left, panel.title, kTextSize, kInk);
    canvas.picture(kMarginPixels + kLine, left, panel.image, scale);
    left += width + kMarginPixels;
  }
  draw_legend(canvas, kMarginPixels + kLine + height + kLine / 2 + 4, 2 * kMarginPixels + width, first.width * scale, folded);
  return canvas.image();
}

// `map_length`: of the map, which may have one value for each feature of a table.
std::string labelled(const Schema& of_inputs, std::span<const double> input, std::int64_t feature, std::size_t map_length) {
  const Schema& schema = of_inputs.of_maps(static_cast<std::int64_t>(map_length));
  const auto at = static_cast<std::size_t>(feature);
  if (&schema == &of_inputs) return fmt::format("{}: {}", schema.feature_name(feature), value_text(schema, feature, input[at]));
  const TableFeature known = of_inputs.table_features()[at];
  return fmt::format("{}: {}", known.name,
                     known.is_category ? known.text_in(input) : value_text(schema, feature, known.value_in(input)));
}

// The features with the largest magnitude, the longest bar first. Signed maps go both ways from an axis, in the colours of heat
// maps: red above zero, blue below.
Image draw_bars(std::span<const double> input, std::span<const double> map, const Schema& schema, const PictureOptions& options) {
  constexpr std::int64_t kMost = 24, kRow = 22, kLongest = 320, kNumber = 80;
  std::vector<double> sizes(map.size());
  std::transform(map.begin(), map.end(), sizes.begin(), [](double value) { return std::abs(value); });
  const auto features = static_cast<std::int64_t>(map.size());
  const std::vector<std::int64_t> order = top_k_ranked(sizes, std::min(features, options.top > 0 ? options.top : kMost));
  const bool with_signs = std::any_of(map.begin(), map.end(), [](double value) { return value < 0; });
  const double longest =
      order.empty() || sizes[static_cast<std::size_t>(order[0])] == 0 ? 1 : sizes[static_cast<std::size_t>(order[0])];
  std::int64_t names = 0;
  for (const std::int64_t feature : order)
    names = std::max(names, Canvas::text_width(labelled(schema, input, feature, map.size()), kTextSize));

  const std::int64_t full = with_signs ? kLongest / 2 : kLongest;  // of the longest bar
  const std::int64_t axis = names + 2 * kMarginPixels + (with_signs ? full + kNumber : 0);
  Canvas canvas(static_cast<std::int64_t>(order.size()) * kRow + 2 * kMarginPixels, axis + full + kNumber + 2 * kMarginPixels,
                kPaper);
  canvas.rectangle(kMarginPixels, axis - 1, static_cast<std::int64_t>(order.size()) * kRow, 1, kFaint);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t top = kMarginPixels + static_cast<std::int64_t>(i) * kRow, middle = top + kRow / 2;
    const std::string name = labelled(schema, input, order[i], map.size());
    const double value = map[static_cast<std::size_t>(order[i])];
    const std::string number = fmt::format("{:.3g}", value);
    const std::int64_t length = std::max<std::int64_t>(1, std::lround(static_cast<double>(full) * std::abs(value) / longest));
    canvas.text(middle, kMarginPixels + names - Canvas::text_width(name, kTextSize), name, kTextSize, kInk);
    canvas.rectangle(top + 3, value < 0 ? axis - length : axis, kRow - 6, length,
                     with_signs ? diverging(value < 0 ? -0.8 : 0.8) : kMagnitude);
    canvas.text(middle, value < 0 ? axis - length - 6 - Canvas::text_width(number, kTextSize) : axis + length + 6, number,
                kTextSize, kInk);
  }
  return canvas.image();
}

}  // namespace

Image draw_map(const RawArray& input, const RawArray& map, const Schema& schema, const PictureOptions& options) {
  const std::vector<double> inputs = to_doubles(input, "input"), values = to_doubles(map, "map");
  return is_drawable(schema.layout) ? draw_grid(inputs, values, schema.layout, options)
                                    : draw_bars(inputs, values, schema, options);
}

void write_map_png(const std::string& path, const RawArray& input, const RawArray& map, const Schema& schema,
                   const PictureOptions& options) {
  write_png(path, draw_map(input, map, schema, options));
}

}  // namespace holdfast::report
