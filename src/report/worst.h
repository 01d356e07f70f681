// The kept arrays of one row as what the page shows: pictures of images and graphs, bars of tables.
#pragma once

#include <string>

#include "holdfast/core/json.h"
#include "holdfast/data/schema.h"

namespace holdfast {

// An array of {"sample", "label", "prediction", "value", "pictures" or "bars"} from arrays/NNNN (docs/run-folder.md).
Json worst_samples(const std::string& folder, const Schema& schema);

}  // namespace holdfast
