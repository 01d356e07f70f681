#include "holdfast/metric/neighborhood.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "holdfast/core/error.h"
#include "windows.h"

namespace holdfast::metric {
namespace {

bool is_table(const Schema& schema) {
  return schema.layout.kind == Layout::Kind::kVector && (!schema.features.empty() || !schema.groups.empty());
}

// The edges of a complete graph that touch node i or node j, i < j, in ascending order.
template <class Visit>
void visit_edges_at(std::int64_t nodes, std::int64_t i, std::int64_t j, const Visit& visit) {
  for (std::int64_t a = 0; a < i; ++a) {
    visit(edge_index(nodes, a, i));
    visit(edge_index(nodes, a, j));
  }
  for (std::int64_t b = i + 1; b < nodes; ++b) visit(edge_index(nodes, i, b));
  for (std::int64_t a = i + 1; a < j; ++a) visit(edge_index(nodes, a, j));
  for (std::int64_t b = j + 1; b < nodes; ++b) visit(edge_index(nodes, j, b));
}

// Adds the edges of one side that touch a marked node.
void add_edges_at(const std::vector<char>& marked, std::int64_t first_edge, FeatureSet& set) {
  const auto nodes = static_cast<std::int64_t>(marked.size());
  for (std::int64_t i = 0, edge = first_edge; i < nodes; ++i) {
    for (std::int64_t j = i + 1; j < nodes; ++j, ++edge) {
      if (marked[static_cast<std::size_t>(i)] || marked[static_cast<std::size_t>(j)]) set.add(edge);
    }
  }
}

// Column after column, each with mean 0 and length 1; all zero where a column never changes.
std::vector<double> standardised_columns(std::span<const double> rows, std::size_t count, std::size_t features) {
  std::vector<double> columns(rows.size(), 0);
  for (std::size_t j = 0; j < features; ++j) {
    double* column = columns.data() + j * count;
    double mean = 0, squares = 0;
    bool constant = true;
    for (std::size_t i = 0; i < count; ++i) {
      column[i] = rows[i * features + j];
      constant = constant && column[i] == column[0];
      mean += column[i] / static_cast<double>(count);
    }
    for (std::size_t i = 0; i < count; ++i) squares += (column[i] - mean) * (column[i] - mean);
    const double length = std::sqrt(squares);
    for (std::size_t i = 0; i < count; ++i) column[i] = constant || length == 0 ? 0 : (column[i] - mean) / length;
  }
  return columns;
}

}  // namespace

Neighborhood::Neighborhood(const Schema& schema, std::int64_t radius)
    : schema_(schema),
      // Nothing is further away than this, and sums with it stay in range.
      radius_(std::min(radius, schema.layout.features())),
      across_(2 * static_cast<double>(radius) + 1),
      sides_(schema.layout.sides) {
  HOLDFAST_CHECK(radius >= 0);
  const Layout& layout = schema.layout;
  const bool grid = layout.kind == Layout::Kind::kGrid;
  height_ = grid ? layout.height : 1;
  width_ = grid ? layout.width : layout.side_features();
  apart_ = layout.kind == Layout::Kind::kSequence && !layout.by_step ? layout.stride : 1;
  if (!schema.neighbors.empty()) {
    kind_ = Kind::kLists;
  } else if (is_table(schema)) {
    kind_ = Kind::kGroups;
  } else {
    kind_ = layout.kind == Layout::Kind::kGraph ? Kind::kGraph : apart_ > 1 ? Kind::kSteps : Kind::kGrid;
  }
}

void Neighborhood::reset(FeatureSet& set) const {
  set.reset(sides_ * height_, width_);
}

void Neighborhood::grow(FeatureSet& set) const {
  HOLDFAST_CHECK(set.rows() == sides_ * height_ && set.width() == width_);
  if (radius_ == 0) return;
  switch (kind_) {
    case Kind::kGrid:
      return dilate(set, sides_, radius_);
    case Kind::kGraph:
      return grow_graph(set);
    case Kind::kGroups:
      return grow_groups(set);
    case Kind::kLists:
      return grow_lists(set);
    case Kind::kSteps:
      return grow_steps(set);
  }
}

// The same number of the w steps on either side.
void Neighborhood::grow_steps(FeatureSet& set) const {
  for (const std::int64_t feature : set.members()) {
    const std::int64_t first = std::max(feature - radius_ * apart_, feature % apart_);
    for (std::int64_t near = first; near <= feature + radius_ * apart_ && near < width_; near += apart_) set.add(near);
  }
}

// Nodes at the ends of members are marked; after two steps every node is.
void Neighborhood::grow_graph(FeatureSet& set) const {
  const std::int64_t nodes = schema_.layout.length;
  std::vector<char> marked(static_cast<std::size_t>(nodes));
  for (std::int64_t side = 0; side < sides_; ++side) {
    std::fill(marked.begin(), marked.end(), 0);
    bool any = false;
    for (std::int64_t edge = 0; edge < width_; ++edge) {
      if (!set.contains(side * width_ + edge)) continue;
      const auto [i, j] = edge_nodes(nodes, edge);
      marked[static_cast<std::size_t>(i)] = marked[static_cast<std::size_t>(j)] = 1;
      any = true;
    }
    if (any && radius_ > 1) std::fill(marked.begin(), marked.end(), 1);
    add_edges_at(marked, side * width_, set);
  }
}

void Neighborhood::grow_groups(FeatureSet& set) const {
  for (const Group& group : schema_.groups) {
    const bool any =
        std::any_of(group.columns.begin(), group.columns.end(), [&](std::int64_t column) { return set.contains(column); });
    if (!any) continue;
    for (const std::int64_t column : group.columns) set.add(column);
  }
}

// Searches breadth first from all members at once.
void Neighborhood::grow_lists(FeatureSet& set) const {
  std::vector<std::int64_t> front = set.members(), next;
  for (std::int64_t step = 0; step < radius_ && !front.empty(); ++step) {
    next.clear();
    for (const std::int64_t feature : front) {
      for (const std::int64_t other : schema_.neighbors[static_cast<std::size_t>(feature)]) {
        if (set.contains(other)) continue;
        set.add(other);
        next.push_back(other);
      }
    }
    front.swap(next);
  }
}

void Neighborhood::add_window(std::int64_t feature, FeatureSet& set) const {
  if (kind_ == Kind::kGraph && radius_ == 1) {
    const std::int64_t first = feature / width_ * width_;
    const auto [i, j] = edge_nodes(schema_.layout.length, feature - first);
    visit_edges_at(schema_.layout.length, i, j, [&](std::int64_t edge) { set.add(first + edge); });
    return;
  }
  if (kind_ != Kind::kGrid) {
    FeatureSet own;
    reset(own);
    own.add(feature);
    grow(own);
    for (std::size_t i = 0; i < own.words().size(); ++i) set.words()[i] |= own.words()[i];
    return;
  }
  const std::int64_t row = feature / width_, column = feature % width_, top = row / height_ * height_;
  const std::int64_t first = std::max<std::int64_t>(0, column - radius_), last = std::min(width_ - 1, column + radius_);
  for (std::int64_t y = std::max(top, row - radius_); y <= std::min(top + height_ - 1, row + radius_); ++y)
    set.add_range(y, first, last);
}

std::vector<std::int64_t> Neighborhood::window(std::int64_t feature) const {
  FeatureSet set;
  reset(set);
  add_window(feature, set);
  return set.members();
}

std::int64_t Neighborhood::window_size(std::int64_t feature) const {
  if (radius_ == 0) return 1;
  if (kind_ == Kind::kGraph) return largest_window();
  if (kind_ != Kind::kGrid) return static_cast<std::int64_t>(window(feature).size());
  const auto inside = [&](std::int64_t at, std::int64_t size) {
    return std::min(size - 1, at + radius_) - std::max<std::int64_t>(0, at - radius_) + 1;
  };
  return inside(feature % width_, width_) * inside(feature / width_ % height_, height_);
}

std::int64_t Neighborhood::largest_window() const {
  if (kind_ == Kind::kGraph) return radius_ == 1 ? 2 * schema_.layout.length - 3 : width_;
  std::int64_t largest = 1;
  if (kind_ == Kind::kGroups) {
    for (const Group& group : schema_.groups) largest = std::max(largest, static_cast<std::int64_t>(group.columns.size()));
  } else {
    for (std::int64_t i = 0; i < sides_ * width_ * height_; ++i) largest = std::max(largest, window_size(i));
  }
  return largest;
}

double Neighborhood::divisor() const {
  if (radius_ == 0) return 1;
  if (kind_ != Kind::kGrid && kind_ != Kind::kSteps) return static_cast<double>(largest_window());
  return schema_.layout.kind == Layout::Kind::kGrid ? across_ * across_ : across_;
}

void Neighborhood::sum_graph(std::span<const double> values, std::span<double> sums) const {
  const std::int64_t nodes = schema_.layout.length;
  for (std::int64_t side = 0; side < sides_; ++side) {
    const double* from = values.data() + side * width_;
    double* to = sums.data() + side * width_;
    if (radius_ > 1) {
      std::fill(to, to + width_, std::accumulate(from, from + width_, 0.0));
      continue;
    }
    const auto features = static_cast<std::size_t>(width_);
    edge_window_sums({from, features}, nodes, {to, features});
  }
}

void Neighborhood::smooth(std::span<const double> values, std::span<double> smoothed) const {
  if (radius_ == 0) {
    std::copy(values.begin(), values.end(), smoothed.begin());
    return;
  }
  if (kind_ == Kind::kGrid) {
    window_sums(values, sides_, height_, width_, radius_, smoothed);
  } else if (kind_ == Kind::kGraph) {
    sum_graph(values, smoothed);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      for (const std::int64_t near : window(static_cast<std::int64_t>(i))) sum += values[static_cast<std::size_t>(near)];
      smoothed[i] = sum;
    }
  }
  const double by = divisor();
  for (double& value : smoothed) value /= by;
}

std::vector<std::vector<std::int64_t>> correlation_neighbors(std::span<const double> rows, std::int64_t features,
                                                             double threshold) {
  HOLDFAST_CHECK(features > 0 && threshold > 0 && threshold <= 1);
  const auto width = static_cast<std::size_t>(features);
  const std::size_t count = rows.size() / width;
  HOLDFAST_CHECK(rows.size() == count * width);
  const std::vector<double> columns = standardised_columns(rows, count, width);
  std::vector<std::vector<std::int64_t>> neighbors(width);
  for (std::size_t a = 0; a < width; ++a) {
    for (std::size_t b = a + 1; b < width; ++b) {
      double correlation = 0;
      for (std::size_t i = 0; i < count; ++i) correlation += columns[a * count + i] * columns[b * count + i];
      // Rounding must not part columns that are copies of each other.
      if (std::abs(correlation) < threshold - 1e-12) continue;
      neighbors[a].push_back(static_cast<std::int64_t>(b));
      neighbors[b].push_back(static_cast<std::int64_t>(a));
    }
  }
  return neighbors;
}

}  // namespace holdfast::metric
