// Pictures of maps: heat maps of images over the image, bar charts with feature names for tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/image.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/data/schema.h"

namespace holdfast {

// Draws one sample's map; `input` and `map` have the layout's sample shape. Grids: the input and the map side by side, each
// scaled to the picture; pairs below each other. Vectors: the longest bars with their names and values. Graphs: the adjacency.
Image draw_map(const RawArray& input, const RawArray& map, const Schema& schema);
void write_map_png(const std::string& path, const RawArray& input, const RawArray& map, const Schema& schema);

}  // namespace holdfast
