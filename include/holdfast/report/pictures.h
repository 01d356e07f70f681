// Pictures of maps: heat maps of images over the image, bar charts with feature names for tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/core/image.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"

namespace holdfast::report {

struct PictureOptions {
  // Images and graphs: mark this many features in a panel of their own; tables: draw this many bars. 0: no such panel, 24 bars.
  std::int64_t top = 0;
};

// Draws one sample's map; `input` and `map` have the layout's sample shape. A map with negative values is signed: blue below
// zero, white, red above; magnitudes go from dark to bright. Colours follow the root of the value, so that faint parts show, and
// on large maps stop at the 99.5th percentile. Grids and graphs: the input, the map, the map over the input and the top features,
// side by side; so are the sides of a pair. Channels are summed. Vectors: the longest bars with the features' names, values and
// attributions.
Image draw_map(const RawArray& input, const RawArray& map, const Schema& schema, const PictureOptions& options = {});
void write_map_png(const std::string& path, const RawArray& input, const RawArray& map, const Schema& schema,
                   const PictureOptions& options = {});

}  // namespace holdfast::report
