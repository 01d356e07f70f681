// Which features count as near each other: what makes a metric tolerant of small shifts.
//
//     layout                    within radius w of a feature                          largest window
//     grid                      the (2w+1) x (2w+1) pixels around it, cut at the border     (2w+1)^2
//     vector, nothing known     the w positions on either side                               2w+1
//     vector of a table         w >= 1: the columns of the same one-hot group           largest group
//     sequence, tokens          the w steps on either side; of numbers, the same number of those     2w+1
//     graph (features: edges)   w = 1: edges that share a node; w >= 2: every edge          2N-3; all edges
//     schema.neighbors          w steps over these lists, whatever the layout           largest window
//
// A vector is a table's when its schema names features or groups: the order of columns means nothing there, and a column
// without a group is near itself only. Windows contain the feature itself, are mutual (i is near j exactly when j is near i)
// and never reach over to the other side of a pair. The graph of a layout is complete, so two steps reach every edge.
//
// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, has grids; the others are ours.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"
#include "holdfast/metric/feature_set.h"

namespace holdfast::metric {

class Neighborhood {
 public:
  // Cheap to make; the schema must outlive it. radius >= 0.
  Neighborhood(const Schema& schema, std::int64_t radius);

  // Empties a set and gives it the shape that the functions below expect. It depends on the schema only.
  void reset(FeatureSet& set) const;

  // Adds every feature that is near a member.
  void grow(FeatureSet& set) const;
  // Adds the window of one feature.
  void add_window(std::int64_t feature, FeatureSet& set) const;

  std::vector<std::int64_t> window(std::int64_t feature) const;  // ascending
  std::int64_t window_size(std::int64_t feature) const;

  // Mean over windows with one constant divisor: smoothed[i] = sum of values over window(i) / divisor().
  void smooth(std::span<const double> values, std::span<double> smoothed) const;
  // The size of the largest window ((2w+1)^2 on grids, even where the border cuts every one). Sums over mutual windows have
  // spectral norm at most this, so smoothing contracts the l2 distance of maps; dividing each sum by its own window's size
  // would not.
  double divisor() const;

 private:
  enum class Kind { kGrid, kGraph, kGroups, kLists, kSteps };

  void grow_graph(FeatureSet& set) const;
  void grow_groups(FeatureSet& set) const;
  void grow_lists(FeatureSet& set) const;
  void grow_steps(FeatureSet& set) const;
  void sum_graph(std::span<const double> values, std::span<double> sums) const;
  std::int64_t largest_window() const;

  const Schema& schema_;
  Kind kind_;
  std::int64_t radius_;
  double across_;                        // 2w+1
  std::int64_t sides_, height_, width_;  // of the grid; a vector of positions has one row a side
  std::int64_t apart_ = 1;               // positions between a number and the same one of the next step
};

// Lists for Schema::neighbors: columns whose correlation over the rows is at least `threshold` in magnitude. `rows` is [N,
// features], row after row; 0 < threshold <= 1. A column that never changes correlates with nothing.
std::vector<std::vector<std::int64_t>> correlation_neighbors(std::span<const double> rows, std::int64_t features,
                                                             double threshold);

}  // namespace holdfast::metric
