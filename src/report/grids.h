// Samples and maps as small pictures, one dot a pixel (or an edge of a graph); sides of a pair beside each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/image.h"
#include "holdfast/data/layout.h"

namespace holdfast::report {

// Whether a sample can be drawn as a grid: images and graphs can, tables cannot.
bool is_drawable(const Layout& layout);

// The input as it looks: grey or colour; a graph is its adjacency, scaled to its largest magnitude.
Image draw_input(const Layout& layout, std::span<const double> input);
// What was added to an input, scaled to its largest magnitude: colours around grey, or blue to red for one channel.
Image draw_nudge(const Layout& layout, std::span<const double> change);
// Folded magnitudes; `scale` and more have the full colour.
Image draw_heat(const Layout& layout, std::span<const double> folded, double scale);
// The 99.5th percentile of magnitudes, of maps large enough for one; the largest where that is 0, and 1 where all are.
double full_colour(std::span<const double> values);

// A folded map, with its signs or without.
struct FoldedMap {
  std::vector<double> values;  // channels summed
  bool with_signs = false;
  double largest = 0;  // magnitude that has the full colour
  bool cut = false;    // some are larger
};
// With signs where any value is negative. On large maps the full colour is that of the 99.5th percentile: a few pixels would
// leave all others pale.
FoldedMap fold_for_picture(const Layout& layout, std::span<const double> map);
Image draw_map_grid(const Layout& layout, const FoldedMap& map);
// The map over the input in grey: the larger a value, the less of the input is left.
Image draw_overlay(const Layout& layout, std::span<const double> input, const FoldedMap& map);
// The input in grey with these features marked.
Image draw_marked(const Layout& layout, std::span<const double> input, std::span<const std::int64_t> features);
// The input in grey, with the features of the top sets over it: kept, lost and new.
Image draw_change(const Layout& layout, std::span<const double> input, std::span<const std::int64_t> before,
                  std::span<const std::int64_t> after);

}  // namespace holdfast::report
