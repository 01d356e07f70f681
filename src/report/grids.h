// Samples and maps as small pictures, one dot a pixel (or an edge of a graph); sides of a pair below each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/image.h"
#include "holdfast/data/layout.h"

namespace holdfast {

// Whether a sample can be drawn as a grid: images and graphs can, tables cannot.
bool is_drawable(const Layout& layout);

// The input as it looks: grey or colour; a graph is its adjacency, scaled to its largest magnitude.
Image draw_input(const Layout& layout, std::span<const double> input);
// Folded magnitudes, scaled to the largest.
Image draw_heat(const Layout& layout, std::span<const double> folded);
// The input in grey, with the features of the top sets over it: kept, lost and new.
Image draw_change(const Layout& layout, std::span<const double> input, std::span<const std::int64_t> before,
                  std::span<const std::int64_t> after);

}  // namespace holdfast
