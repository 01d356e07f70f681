// The kept arrays of one row as what the page shows: pictures of images and graphs, bars of tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/image.h"
#include "holdfast/core/json.h"
#include "holdfast/data/schema.h"

namespace holdfast::report {

// The class's name where the schema knows it, else "class 3"; null for null.
Json class_name(const Json& label, const Schema& schema);

// The pictures of a page as data URLs, each once.
class PicturePool {
 public:
  std::size_t add(const Image& image);  // its place
  std::size_t bytes() const { return bytes_; }
  const std::vector<std::string>& urls() const { return urls_; }

 private:
  std::vector<std::string> urls_;
  std::map<std::string, std::size_t> places_;
  std::size_t bytes_ = 0;
};
// A page stays below 5 MB with the script's own 0.9 and the values of the samples.
inline constexpr std::size_t kMostSampleBytes = 3'000'000;

// An array of {"sample", "label", "prediction", "value", "pictures", "bars" or "words"} from arrays/NNNN (docs/run-folder.md).
Json worst_samples(const std::string& folder, const Schema& schema, PicturePool& pool);

// The same for every row of a run: the worst of each first, then the second, as long as the page may grow.
struct RowArrays {
  std::string folder;
  Schema schema;
};
struct WorstRows {
  Json lists;  // one a row
  std::int64_t left_out = 0;
};
WorstRows worst_of_rows(const std::vector<RowArrays>& rows, PicturePool& pool);

// The pictures themselves, by title; none for tables.
struct SamplePictures {
  std::int64_t sample = 0;
  std::string prediction;
  double value = 0;
  std::vector<std::pair<std::string, Image>> pictures;
};
std::vector<SamplePictures> sample_pictures(const std::string& folder, const Schema& schema);

}  // namespace holdfast::report
