#include "grids.h"

#include <algorithm>
#include <cmath>

#include "holdfast/core/error.h"
#include "palette.h"

namespace holdfast::report {
namespace {

// The picture's size, and where a folded feature lies in it.
struct MapCanvas {
  explicit MapCanvas(const Layout& layout) : layout_(layout) {
    const bool graph = layout.kind == Layout::Kind::kGraph;
    side_height = graph ? layout.length : layout.height;
    width = graph ? layout.length : layout.width;
  }

  // Sides of a pair lie beside each other, with white between them.
  Image blank(Colour colour) const {
    Image image{.height = side_height, .width = full_width(), .channels = 3, .pixels = {}};
    image.pixels.resize(static_cast<std::size_t>(3 * image.height * image.width), 255);
    for (std::int64_t side = 0; side < layout_.sides; ++side) {
      for (std::int64_t row = 0; row < side_height; ++row) {
        for (std::int64_t column = 0; column < width; ++column) dot(image, side, row, column, colour);
      }
    }
    return image;
  }

  // An edge is drawn twice, above and below the diagonal.
  void paint(Image& image, std::int64_t feature, Colour colour) const {
    const std::int64_t side = feature / layout_.side_features();
    const std::int64_t place = feature % layout_.side_features();
    if (layout_.kind == Layout::Kind::kGraph) {
      const auto [i, j] = edge_nodes(layout_.length, place);
      dot(image, side, i, j, colour);
      dot(image, side, j, i, colour);
    } else {
      dot(image, side, place / width, place % width, colour);
    }
  }

  // As paint, for a few features among many: in the matrix of a large graph a dot alone would hardly be seen.
  void mark(Image& image, std::int64_t feature, Colour colour) const {
    const std::int64_t reach = layout_.kind == Layout::Kind::kGraph ? layout_.length / 64 : 0;
    if (reach == 0) return paint(image, feature, colour);
    const std::int64_t side = feature / layout_.side_features();
    const auto [i, j] = edge_nodes(layout_.length, feature % layout_.side_features());
    const auto near = [&](std::int64_t node) {
      return std::pair{std::max<std::int64_t>(0, node - reach), std::min(width - 1, node + reach)};
    };
    const auto [top, bottom] = near(i);
    const auto [left, right] = near(j);
    for (std::int64_t row = top; row <= bottom; ++row) {
      for (std::int64_t column = left; column <= right; ++column) {
        dot(image, side, row, column, colour);
        dot(image, side, column, row, colour);
      }
    }
  }

  std::int64_t side_height = 0, width = 0;

 private:
  std::int64_t gap() const { return std::max<std::int64_t>(1, width / 16); }
  std::int64_t full_width() const { return layout_.sides * (width + gap()) - gap(); }
  void dot(Image& image, std::int64_t side, std::int64_t row, std::int64_t column, Colour colour) const {
    const std::int64_t at = 3 * (row * full_width() + side * (width + gap()) + column);
    std::copy(colour.begin(), colour.end(), image.pixels.begin() + at);
  }

  const Layout& layout_;
};

std::uint8_t level(double value) {
  return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

// The colour of a feature of the input: its channels, one repeated when there is one.
Colour input_colour(const Layout& layout, std::span<const double> input, std::int64_t feature) {
  const std::int64_t side = feature / layout.side_features();
  const std::int64_t place = feature % layout.side_features();
  const std::int64_t area = layout.side_features();
  Colour colour{};
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const std::int64_t source = layout.channels >= 3 ? channel : 0;
    colour[static_cast<std::size_t>(channel)] =
        level(input[static_cast<std::size_t>((side * layout.channels + source) * area + place)]);
  }
  return colour;
}

double largest(std::span<const double> values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result > 0 ? result : 1;
}

}  // namespace

double full_colour(std::span<const double> values) {
  constexpr std::size_t kEnough = 1000;
  if (values.size() < kEnough) return largest(values);
  std::vector<double> sizes(values.size());
  std::transform(values.begin(), values.end(), sizes.begin(), [](double value) { return std::abs(value); });
  const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() * 995 / 1000);
  std::nth_element(sizes.begin(), place, sizes.end());
  return *place > 0 ? *place : largest(values);
}

namespace {

// A graph is sparse where fewer than one edge in so many has a weight that would be seen, as a share of the largest.
constexpr std::int64_t kSparse = 20;
constexpr double kVisible = 0.02;

// A feature's value as it is shown: the root of its share of the largest, with its sign.
double shown(const FoldedMap& map, std::int64_t feature) {
  const double share = std::clamp(map.values[static_cast<std::size_t>(feature)] / map.largest, -1.0, 1.0);
  return std::copysign(std::sqrt(std::abs(share)), share);
}

// The input in grey, so that what is drawn over it stands out: on dark, and for graphs, which are mostly white, on light.
Image draw_grey(const Layout& layout, std::span<const double> input) {
  Image image = draw_input(layout, input);
  const bool light = layout.kind == Layout::Kind::kGraph;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    const int grey = (image.pixels[i] + image.pixels[i + 1] + image.pixels[i + 2]) / 3;
    std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(i), 3,
                static_cast<std::uint8_t>(light ? 150 + 2 * grey / 5 : 40 + grey / 2));
  }
  return image;
}

bool contains(std::span<const std::int64_t> set, std::int64_t value) {
  return std::find(set.begin(), set.end(), value) != set.end();
}

}  // namespace

bool is_drawable(const Layout& layout) {
  return layout.kind == Layout::Kind::kGrid || layout.kind == Layout::Kind::kGraph;
}

Image draw_input(const Layout& layout, std::span<const double> input) {
  HOLDFAST_CHECK(is_drawable(layout));
  const MapCanvas canvas(layout);
  const bool graph = layout.kind == Layout::Kind::kGraph;
  Image image = canvas.blank(graph ? diverging(0) : Colour{0, 0, 0});
  const double scale = graph ? largest(input) : 1;
  const bool sparse = graph && kSparse * std::count_if(input.begin(), input.end(), [&](double value) {
                                 return std::abs(value) > kVisible * scale;
                               }) < std::ssize(input);
  for (std::int64_t feature = 0; feature < layout.features(); ++feature) {
    const double value = input[static_cast<std::size_t>(feature)];
    if (sparse && std::abs(value) > kVisible * scale) {
      canvas.mark(image, feature, diverging(value / scale));
    } else if (!sparse) {
      canvas.paint(image, feature, graph ? diverging(value / scale) : input_colour(layout, input, feature));
    }
  }
  return image;
}

Image draw_nudge(const Layout& layout, std::span<const double> change) {
  HOLDFAST_CHECK(is_drawable(layout));
  const MapCanvas canvas(layout);
  Image image = canvas.blank(diverging(0));
  const double scale = largest(change);
  std::vector<double> shown(change.begin(), change.end());
  if (layout.kind == Layout::Kind::kGrid && layout.channels >= 3) {
    for (double& value : shown) value = 0.5 + 0.5 * value / scale;
    for (std::int64_t feature = 0; feature < layout.features(); ++feature)
      canvas.paint(image, feature, input_colour(layout, shown, feature));
    return image;
  }
  const auto area = layout.side_features();
  for (std::int64_t feature = 0; feature < layout.features(); ++feature) {
    const std::int64_t at = feature / area * layout.channels * area + feature % area;
    canvas.paint(image, feature, diverging(shown[static_cast<std::size_t>(at)] / scale));
  }
  return image;
}

Image draw_heat(const Layout& layout, std::span<const double> folded, double scale) {
  HOLDFAST_CHECK(is_drawable(layout));
  const MapCanvas canvas(layout);
  Image image = canvas.blank(sequential(0));
  for (std::int64_t feature = 0; feature < layout.features(); ++feature) {
    canvas.paint(image, feature, sequential(std::sqrt(folded[static_cast<std::size_t>(feature)] / scale)));
  }
  return image;
}

FoldedMap fold_for_picture(const Layout& layout, std::span<const double> map) {
  FoldedMap folded{.values = std::vector<double>(static_cast<std::size_t>(layout.features()), 0),
                   .with_signs = std::any_of(map.begin(), map.end(), [](double value) { return value < 0; })};
  const auto area = static_cast<std::size_t>(layout.side_features());
  const auto channels = static_cast<std::size_t>(layout.channels);
  for (std::size_t i = 0; i < map.size(); ++i) folded.values[i / (area * channels) * area + i % area] += map[i];
  folded.largest = full_colour(folded.values);
  folded.cut = largest(folded.values) > folded.largest;
  return folded;
}

Image draw_map_grid(const Layout& layout, const FoldedMap& map) {
  const MapCanvas canvas(layout);
  const auto colour = [&](double value) { return map.with_signs ? diverging(value) : sequential(value); };
  Image image = canvas.blank(colour(0));
  for (std::int64_t feature = 0; feature < layout.features(); ++feature)
    canvas.paint(image, feature, colour(shown(map, feature)));
  return image;
}

Image draw_overlay(const Layout& layout, std::span<const double> input, const FoldedMap& map) {
  const Image grey = draw_grey(layout, input);
  const Image colours = draw_map_grid(layout, map);
  const MapCanvas canvas(layout);
  // How much of the map is seen at each dot, painted as the map is so that graphs and pairs need no care.
  Image weights = canvas.blank({0, 0, 0});
  for (std::int64_t feature = 0; feature < layout.features(); ++feature) {
    const std::uint8_t weight = level(0.9 * std::abs(shown(map, feature)));
    canvas.paint(weights, feature, {weight, weight, weight});
  }
  Image image = grey;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const int weight = weights.pixels[i];
    image.pixels[i] = static_cast<std::uint8_t>((colours.pixels[i] * weight + grey.pixels[i] * (255 - weight)) / 255);
  }
  return image;
}

Image draw_marked(const Layout& layout, std::span<const double> input, std::span<const std::int64_t> features) {
  Image image = draw_grey(layout, input);
  const MapCanvas canvas(layout);
  for (const std::int64_t feature : features) canvas.mark(image, feature, kMarked);
  return image;
}

Image draw_change(const Layout& layout, std::span<const double> input, std::span<const std::int64_t> before,
                  std::span<const std::int64_t> after) {
  Image image = draw_grey(layout, input);
  const MapCanvas canvas(layout);
  for (const std::int64_t feature : before) canvas.mark(image, feature, contains(after, feature) ? kKept : kLost);
  for (const std::int64_t feature : after) {
    if (!contains(before, feature)) canvas.mark(image, feature, kNew);
  }
  return image;
}

}  // namespace holdfast::report
