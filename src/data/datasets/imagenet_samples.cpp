// One photograph for each ImageNet class, all of them test samples. Read from the repository's archive, in which the
// names (nXXXXXXXX_name.JPEG) in order are the classes 0 to 999, or from images with labels.csv (file, class_index).
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/file_tree.h"
#include "images.h"

namespace holdfast::data::imagenet_samples {

constexpr std::int64_t kImagenetClasses = 1000;
constexpr const char* kArchive = "imagenet-sample-images.zip";
constexpr const char* kLabels = "labels.csv";

struct Sample {
  std::size_t index = 0;  // in the tree
  std::int64_t label = 0;
};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}  // npos + 1 is 0

// "black stork" of n02002724_black_stork.JPEG.
std::string class_name(const std::string& file) {
  const std::size_t begin = file.find('_') + 1;
  std::string name = file.substr(begin, file.rfind('.') - begin);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::map<std::string, std::int64_t> read_class_indices(const std::string& path) {
  const CsvTable table = read_csv(path);
  const std::size_t file = table.column("file", path), label = table.column("class_index", path);
  std::map<std::string, std::int64_t> labels;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& text = table.rows[i][label];
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value >= kImagenetClasses) {
      input_error("{}:{}: class_index '{}' is not a class from 0 to {}", path, table.lines[i], text, kImagenetClasses - 1);
    }
    labels[table.rows[i][file]] = value;
  }
  return labels;
}

// The images of a tree with their labels, in the order of the labels.
std::vector<Sample> find_samples(const FileTree& tree, const std::string& folder) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (tree.name(i).ends_with(".JPEG")) samples.push_back({i, std::ssize(samples)});
  }
  if (std::ssize(samples) == kImagenetClasses) return samples;
  if (!file_exists(folder + "/" + kLabels)) {
    input_error("{} has {} images and no {}; without it there must be one for each of the {} classes", folder, samples.size(),
                kLabels, kImagenetClasses);
  }
  const auto labels = read_class_indices(folder + "/" + kLabels);
  for (Sample& sample : samples) {
    const auto found = labels.find(base_name(tree.name(sample.index)));
    if (found == labels.end()) input_error("{}/{} has no row for {}", folder, kLabels, base_name(tree.name(sample.index)));
    sample.label = found->second;
  }
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.label < b.label; });
  return samples;
}

class ImagenetSamples final : public DatasetLoader {
 public:
  explicit ImagenetSamples(const Options& options) : size_(options.integer("size")) {}

  Source source() const override {
    const std::string known = "5f79ad5e3fc96e99ec4c4417324f0dddf4231bde5615e26783c740625a6039c9";
    return {.folder = "imagenet_samples",
            .files = {{.path = kArchive,
                       .url = "https://github.com/EliSchwartz/imagenet-sample-images/archive/"
                              "bc69043e2862758a1906c6a24a792bb28c6bb2ff.zip"}},
            .alternatives = {{{.path = "*.JPEG", .sha256 = {known}, .count = 100},
                              {kLabels, {"ca436c2131518dbdc3c5981d2bcb49b7853e59fc8ceaddce2e0ff343b1599b77"}}},
                             {{.path = "*.JPEG", .count = kImagenetClasses}}},
            .licence = "ImageNet terms: non-commercial research",
            .homepage = "https://github.com/EliSchwartz/imagenet-sample-images"};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source("imagenet_samples", source(), context.folder);
    const auto tree = open_tree(file_exists(folder + "/" + kArchive) ? folder + "/" + kArchive : folder);
    const std::vector<Sample> samples = find_samples(*tree, folder);
    const auto where = [&](std::int64_t i) { return tree->where(samples[static_cast<std::size_t>(i)].index); };
    at::Tensor inputs = decode_images(
        std::ssize(samples), 3, size_, size_,
        [&](std::int64_t i) {
          return cropped(decode_image(tree->read(samples[static_cast<std::size_t>(i)].index), where(i), 3), size_);
        },
        where);

    std::vector<std::string> classes;
    for (std::int64_t i = 0; i < kImagenetClasses; ++i) classes.push_back(fmt::format("class {}", i));
    std::vector<std::int64_t> labels;
    for (const Sample& sample : samples) {
      labels.push_back(sample.label);
      classes[static_cast<std::size_t>(sample.label)] = class_name(base_name(tree->name(sample.index)));
    }
    Dataset dataset = image_dataset(std::move(inputs), labels, official_split(labels, 0, context.seed), std::move(classes));
    dataset.notes.push_back(fmt::format("{} images, all in the test part; there is nothing to train on", samples.size()));
    return dataset;
  }

 private:
  std::int64_t size_;
};

const MethodInfo kInfo{.name = "imagenet_samples",
                       .summary = "photographs from ImageNet, RGB, one for a class, up to 1000",
                       .citation = "Russakovsky et al., \"ImageNet Large Scale Visual Recognition Challenge\", IJCV 2015",
                       .options = {{"size", 227, between(8, 1024),
                                    "the shorter side is scaled to this many pixels, then the middle square is taken"}}};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<ImagenetSamples>(kInfo);
}

}  // namespace holdfast::data::imagenet_samples
