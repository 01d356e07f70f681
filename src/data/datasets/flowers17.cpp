// Oxford Flowers 17: 80 photographs of each of 17 flowers. image_NNNN.jpg shows flower (NNNN - 1) / 80. Read from the
// official 17flowers.tgz or from the images themselves, here or in jpg/.
#include <cctype>
#include <optional>
#include <utility>

#include "holdfast/core/files.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/file_tree.h"
#include "images.h"

namespace holdfast::data::flowers17 {

constexpr const char* kFlowersArchive = "17flowers.tgz";
constexpr std::int64_t kEach = 80;
const std::vector<std::string> kFlowers = {"daffodil",  "snowdrop", "lily of the valley", "bluebell",   "crocus", "iris",
                                           "tigerlily", "tulip",    "fritillary",         "sunflower",  "daisy",  "coltsfoot",
                                           "dandelion", "cowslip",  "buttercup",          "windflower", "pansy"};
const std::int64_t kImages = kEach * std::ssize(kFlowers);

// NNNN of a path that ends in image_NNNN.jpg, when it is one of the numbers.
std::optional<std::int64_t> number_of(const std::string& path) {
  constexpr std::size_t kLength = 14;  // image_NNNN.jpg
  if (path.size() < kLength || (path.size() > kLength && path[path.size() - kLength - 1] != '/')) return {};
  const std::string name = path.substr(path.size() - kLength);
  if (!name.starts_with("image_") || !name.ends_with(".jpg")) return {};
  std::int64_t number = 0;
  for (const char digit : name.substr(6, 4)) {
    if (!std::isdigit(static_cast<unsigned char>(digit))) return {};
    number = 10 * number + (digit - '0');
  }
  return number >= 1 && number <= kImages ? std::optional(number) : std::nullopt;
}

class Flowers17 final : public DatasetLoader {
 public:
  explicit Flowers17(const Options& options) : size_(options.integer("size")) {}

  Source source() const override {
    // The second checksum is of the same photographs, scaled to 128 x 128.
    const std::string reduced = "a21519515894929fe1b3767bb216aa3494ace4031f3a106b9c7ded9afed20410";
    return {.folder = "flowers17",
            .files = {{.path = kFlowersArchive,
                       .sha256 = {"b59a65d8d1a99cd66944d474e1289eab"},
                       .url = "https://www.robots.ox.ac.uk/~vgg/data/flowers/17/17flowers.tgz"}},
            .alternatives = {{{.path = "image_*.jpg", .sha256 = {reduced}, .count = kImages}},
                             {{.path = "jpg/image_*.jpg", .count = kImages}}},
            .licence = "not stated",
            .homepage = "https://www.robots.ox.ac.uk/~vgg/data/flowers/17/"};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source("flowers17", source(), context.folder);
    const auto tree = open_tree(file_exists(folder + "/" + kFlowersArchive) ? folder + "/" + kFlowersArchive : folder);
    std::vector<std::size_t> images;
    std::vector<std::int64_t> labels;
    for (std::size_t i = 0; i < tree->size(); ++i) {
      if (const auto number = number_of(tree->name(i))) {
        images.push_back(i);
        labels.push_back((*number - 1) / kEach);
      }
    }
    if (std::ssize(images) != kImages) input_error("{} has {} images image_NNNN.jpg, not {}", folder, images.size(), kImages);
    const auto where = [&](std::int64_t i) { return tree->where(images[static_cast<std::size_t>(i)]); };
    at::Tensor inputs = decode_images(
        kImages, 3, size_, size_,
        [&](std::int64_t i) {
          return cropped(decode_image(tree->read(images[static_cast<std::size_t>(i)]), where(i), 3), size_);
        },
        where);
    return image_dataset(std::move(inputs), labels, stratified_split(labels, context.seed), kFlowers);
  }

 private:
  std::int64_t size_;
};

const MethodInfo kInfo{
    .name = "flowers17",
    .summary = "photographs of flowers, RGB, 17 classes of 80 images",
    .citation = "Nilsback and Zisserman, \"A Visual Vocabulary for Flower Classification\", CVPR 2006",
    .options = {{"size", 128, between(8, 512),
                 "the shorter side is scaled to this many pixels, then the middle square is taken"}},
    .notes = "Split by seed, every class in proportion: the three official splits come in a MATLAB file that is not read."};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Flowers17>(kInfo);
}

}  // namespace holdfast::data::flowers17
