#include "holdfast/data/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/words.h"

namespace holdfast::data {
namespace {

// Keeps every product below exact in 64 bits whatever a file claims; no sample comes near it.
constexpr std::int64_t kLargestSample = std::int64_t{1} << 40;

Layout checked(const Layout& layout) {
  if (layout.sides != 1 && layout.sides != 2) input_error("a sample has 1 or 2 sides, not {}", layout.sides);
  double elements = static_cast<double>(layout.sides);
  const auto require = [&](const char* what, std::int64_t value, std::int64_t least) {
    if (value < least) input_error("a layout needs at least {} {}, not {}", least, what, value);
    elements *= static_cast<double>(value);
  };
  switch (layout.kind) {
    case Layout::Kind::kVector:
      require("feature", layout.length, 1);
      break;
    case Layout::Kind::kGrid:
      require("channel", layout.channels, 1);
      require("row", layout.height, 1);
      require("column", layout.width, 1);
      break;
    case Layout::Kind::kGraph:
      require("nodes", layout.length, 2);
      elements *= static_cast<double>(layout.length - 1) / 2;
      break;
    case Layout::Kind::kSequence:
    case Layout::Kind::kTokens:
      require("step", layout.length, 1);
      require("number a step", layout.stride, 1);
      if (layout.sides != 1) input_error("a sequence has 1 side, not {}", layout.sides);
      break;
  }
  if (layout.context < 0) input_error("a layout has at least 0 numbers of context, not {}", layout.context);
  if (layout.context > 0 && layout.kind == Layout::Kind::kGraph) input_error("graphs have no context");
  if (layout.context > 0 && layout.sides != 1) input_error("pairs have no context");
  if (layout.kind == Layout::Kind::kTokens && layout.context == 0)
    input_error("tokens have at least 1 number of context: whether a token is ranked");
  elements += static_cast<double>(layout.context) * static_cast<double>(std::max<std::int64_t>(1, layout.side_features()));
  if (elements > static_cast<double>(kLargestSample)) input_error("a layout has at most 2^40 elements, not {:.3g}", elements);
  return layout;
}

std::string describe_side(const Layout& layout, const char* plural) {
  switch (layout.kind) {
    case Layout::Kind::kVector:
      return fmt::format("vector{} of {} features", plural, layout.length);
    case Layout::Kind::kGrid:
      return fmt::format("{} x {} x {} image{}", layout.channels, layout.height, layout.width, plural);
    case Layout::Kind::kGraph:
      return fmt::format("graph{} with {} nodes", plural, layout.length);
    case Layout::Kind::kSequence:
      return fmt::format("sequence of {} steps of {}", layout.length, counted(layout.stride, "number"));
    case Layout::Kind::kTokens:
      return fmt::format("sequence of {} tokens of {}", layout.length, counted(layout.stride, "number"));
  }
  return {};
}

// For layouts whose elements are not channels one after the other.
template <class Number>
void fold_by_element(const Layout& layout, std::span<const Number> maps, std::span<double> folded) {
  const std::vector<std::int64_t> feature = layout.element_features();
  const auto features = static_cast<std::size_t>(layout.features());
  std::fill(folded.begin(), folded.end(), 0.0);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const std::int64_t own = feature[i % feature.size()];
    if (own >= 0) folded[i / feature.size() * features + static_cast<std::size_t>(own)] += std::abs(static_cast<double>(maps[i]));
  }
}

template <class Number>
void fold_values(const Layout& layout, std::span<const Number> maps, std::span<double> folded) {
  const std::int64_t features = layout.features();
  const std::int64_t count = static_cast<std::int64_t>(folded.size()) / features;
  HOLDFAST_CHECK(static_cast<std::int64_t>(folded.size()) == count * features);
  const auto values = static_cast<std::int64_t>(maps.size());
  if (values != count * layout.inputs() && values != count * features) {
    input_error("a map of {} values does not fit a {}: it needs {}", values / std::max<std::int64_t>(1, count), layout.describe(),
                layout.inputs());
  }
  if (!layout.is_plain() && values == count * layout.inputs()) return fold_by_element(layout, maps, folded);
  const std::size_t channels = maps.size() / std::max<std::size_t>(1, folded.size());  // 1 when the maps were folded before
  const auto side = static_cast<std::size_t>(channels == 1 ? values : layout.side_features());
  const Number* from = maps.data();
  for (double* to = folded.data(); to < folded.data() + folded.size(); to += side) {
    for (std::size_t i = 0; i < side; ++i) to[i] = std::abs(static_cast<double>(from[i]));
    from += side;
    for (std::size_t channel = 1; channel < channels; ++channel, from += side) {
      for (std::size_t i = 0; i < side; ++i) to[i] += std::abs(static_cast<double>(from[i]));
    }
  }
}

template <class Number>
std::vector<double> fold_values(const Layout& layout, std::span<const Number> map) {
  std::vector<double> folded(static_cast<std::size_t>(layout.features()));
  fold_values(layout, map, std::span(folded));
  return folded;
}

}  // namespace

Layout Layout::vector(std::int64_t length, std::int64_t sides) {
  return checked({.kind = Kind::kVector, .sides = sides, .length = length});
}

Layout Layout::grid(std::int64_t channels, std::int64_t height, std::int64_t width, std::int64_t sides) {
  return checked({.kind = Kind::kGrid, .sides = sides, .channels = channels, .height = height, .width = width});
}

Layout Layout::graph(std::int64_t nodes, std::int64_t sides) {
  return checked({.kind = Kind::kGraph, .sides = sides, .length = nodes});
}

Layout Layout::sequence(std::int64_t length, std::int64_t width, bool by_step) {
  return checked({.kind = Kind::kSequence, .length = length, .stride = width, .by_step = by_step});
}

Layout Layout::tokens(std::int64_t length, std::int64_t width, std::int64_t context) {
  return checked({.kind = Kind::kTokens, .length = length, .stride = width, .context = context});
}

Layout Layout::with_context(std::int64_t numbers) const {
  Layout layout = *this;
  layout.context = numbers;
  return checked(layout);
}

Layout Layout::guess(std::span<const std::int64_t> sample_shape) {
  switch (sample_shape.size()) {
    case 1:
      return vector(sample_shape[0]);
    case 2:
      return grid(1, sample_shape[0], sample_shape[1]);
    case 3:
      return grid(sample_shape[0], sample_shape[1], sample_shape[2]);
    default:
      input_error("samples with {} need a schema that says what they are (--schema FILE)",
                  counted(std::ssize(sample_shape), "dimension"));
  }
}

std::vector<std::int64_t> Layout::sample_shape() const {
  std::vector<std::int64_t> shape;
  if (sides == 2) shape.push_back(2);
  if (kind == Kind::kGrid) {
    shape.insert(shape.end(), {channels + context, height, width});
  } else if (is_sequence()) {
    shape.insert(shape.end(), {length, stride + context});
  } else {
    shape.push_back(side_features() + context);
  }
  return shape;
}

std::int64_t Layout::inputs() const {
  if (kind == Kind::kGrid) return features() * (channels + context);
  return is_sequence() ? length * (stride + context) : features() + context;
}

std::vector<std::int64_t> Layout::element_features() const {
  std::vector<std::int64_t> feature(static_cast<std::size_t>(inputs()));
  const std::int64_t side = side_features(), numbers = kind == Kind::kGrid ? channels : 1;
  for (std::int64_t i = 0; i < inputs(); ++i) {
    std::int64_t own = -1;
    if (is_sequence()) {
      const std::int64_t step = i / (stride + context), number = i % (stride + context);
      if (number < stride) own = kind == Kind::kSequence && !by_step ? step * stride + number : step;
    } else if (const std::int64_t of_side = i % (side * numbers + (context > 0 ? inputs() : 0)); of_side < side * numbers) {
      own = i / (side * numbers) * side + of_side % side;
    }
    feature[static_cast<std::size_t>(i)] = own;
  }
  return feature;
}

std::int64_t Layout::features() const {
  return sides * side_features();
}

std::int64_t Layout::side_features() const {
  switch (kind) {
    case Kind::kVector:
      return length;
    case Kind::kGrid:
      return height * width;
    case Kind::kGraph:
      return length * (length - 1) / 2;
    case Kind::kSequence:
      return by_step ? length : length * stride;
    case Kind::kTokens:
      return length;
  }
  return 0;
}

std::string Layout::describe() const {
  return sides == 2 ? "pair of " + describe_side(*this, "s") : describe_side(*this, "");
}

std::int64_t edge_index(std::int64_t nodes, std::int64_t i, std::int64_t j) {
  HOLDFAST_CHECK(0 <= i && i < j && j < nodes);
  return i * (2 * nodes - i - 1) / 2 + (j - i - 1);
}

std::pair<std::int64_t, std::int64_t> edge_nodes(std::int64_t nodes, std::int64_t edge) {
  HOLDFAST_CHECK(0 <= edge && edge < nodes * (nodes - 1) / 2);
  // Row i starts at i(2n-i-1)/2; the root of that parabola is within one of the row, whatever the rounding.
  const double b = 2.0 * static_cast<double>(nodes) - 1;
  const double root = (b - std::sqrt(std::max(0.0, b * b - 8.0 * static_cast<double>(edge)))) / 2;
  std::int64_t i = std::min(static_cast<std::int64_t>(root), nodes - 2);
  while (i > 0 && edge_index(nodes, i, i + 1) > edge) --i;
  while (i < nodes - 2 && edge_index(nodes, i + 1, i + 2) <= edge) ++i;
  return {i, edge - edge_index(nodes, i, i + 1) + i + 1};
}

std::vector<double> fold(const Layout& layout, std::span<const float> map) {
  return fold_values(layout, map);
}
std::vector<double> fold(const Layout& layout, std::span<const double> map) {
  return fold_values(layout, map);
}
void fold_into(const Layout& layout, std::span<const float> map, std::span<double> folded) {
  fold_values(layout, map, folded);
}
void fold_into(const Layout& layout, std::span<const double> map, std::span<double> folded) {
  fold_values(layout, map, folded);
}

}  // namespace holdfast::data
