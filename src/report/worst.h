// The kept arrays of one row as what the page shows: pictures of images and graphs, bars of tables.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/image.h"
#include "holdfast/core/json.h"
#include "holdfast/data/schema.h"

namespace holdfast::report {

// An array of {"sample", "label", "prediction", "value", "pictures" or "bars"} from arrays/NNNN (docs/run-folder.md).
Json worst_samples(const std::string& folder, const Schema& schema);

// The pictures themselves, by title; none for tables.
struct SamplePictures {
  std::int64_t sample = 0;
  std::string prediction;
  double value = 0;
  std::vector<std::pair<std::string, Image>> pictures;
};
std::vector<SamplePictures> sample_pictures(const std::string& folder, const Schema& schema);

}  // namespace holdfast::report
