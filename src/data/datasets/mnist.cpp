// MNIST and the datasets in its form: four idx files, 60000 + 10000 grey images of 28 x 28, ten classes. The 10000 are the
// official test set.
#include <array>
#include <span>
#include <utility>

#include "holdfast/core/idx.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "images.h"

namespace holdfast::data::mnist {

struct Part {
  RawArray images, labels;
  std::int64_t count = 0;  // those that are used: the first of them
};

Part read_part(const std::string& folder, const std::string& part, std::int64_t limit) {
  const std::string image_path = folder + "/" + part + "-images-idx3-ubyte.gz",
                    label_path = folder + "/" + part + "-labels-idx1-ubyte.gz";
  Part result{read_idx(image_path), read_idx(label_path)};
  const auto& shape = result.images.shape;
  if (result.images.type != ElementType::kUint8 || shape.size() != 3) {
    input_error("{}: {} of {}, expected [N, height, width] of uint8", image_path, to_string(shape),
                to_string(result.images.type));
  }
  if (result.labels.type != ElementType::kUint8 || result.labels.shape != std::vector{shape[0]}) {
    input_error("{}: {} of {}, expected [{}] of uint8: one label for each image", label_path, to_string(result.labels.shape),
                to_string(result.labels.type), shape[0]);
  }
  result.count = limited(shape[0], limit);
  return result;
}

std::span<const std::uint8_t> values(const RawArray& array, std::int64_t count) {
  const std::int64_t each = array.shape[0] == 0 ? 0 : array.count() / array.shape[0];
  return {reinterpret_cast<const std::uint8_t*>(array.bytes.data()), static_cast<std::size_t>(count * each)};
}

class MnistLoader final : public DatasetLoader {
 public:
  MnistLoader(std::string name, Source source, std::vector<std::string> classes, const Options& options)
      : name_(std::move(name)), source_(std::move(source)), classes_(std::move(classes)), limits_(Limits::of(options)) {}

  Source source() const override { return source_; }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source(name_, source_, context.folder);
    std::array<Part, 2> parts;
    for_each_tile(2, 1, 0, [&](const Tile& tile) {
      parts[static_cast<std::size_t>(tile.index)] =
          tile.index == 0 ? read_part(folder, "train", limits_.train) : read_part(folder, "t10k", limits_.test);
    });
    const auto& [train, test] = parts;
    const std::int64_t height = train.images.shape[1], width = train.images.shape[2];
    if (test.images.shape[1] != height || test.images.shape[2] != width) {
      input_error("{}: training images are {} x {} pixels, test images {} x {}", folder, height, width, test.images.shape[1],
                  test.images.shape[2]);
    }
    at::Tensor inputs = new_images(train.count + test.count, 1, height, width);
    fill_unit(inputs.narrow(0, 0, train.count), values(train.images, train.count));
    fill_unit(inputs.narrow(0, train.count, test.count), values(test.images, test.count));
    std::vector<std::int64_t> labels;
    for (const Part* part : {&train, &test}) {
      const auto some = values(part->labels, part->count);
      labels.insert(labels.end(), some.begin(), some.end());
    }
    return image_dataset(std::move(inputs), std::move(labels), train.count, classes_, context.seed);
  }

 private:
  std::string name_;
  Source source_;
  std::vector<std::string> classes_;
  Limits limits_;
};

// One of the four: its name, the official file's sha256, and that of the same images packed again by somebody we know.
struct KnownFile {
  const char* name;
  const char* official;
  const char* packed_again;
};

std::vector<Source::File> files_at(const std::string& address, const std::vector<KnownFile>& known) {
  std::vector<Source::File> files;
  for (const KnownFile& file : known) {
    files.push_back({.path = file.name, .sha256 = {file.official, file.packed_again}, .url = address + "/" + file.name});
  }
  return files;
}

void add(Registry<DatasetLoader>& registry, MethodInfo info, const Source& source, const std::vector<std::string>& classes) {
  const std::string name = info.name;
  info.options = {train_limit_option(), test_limit_option()};
  registry.add(std::move(info),
               [=](const Options& options) { return std::make_unique<MnistLoader>(name, source, classes, options); });
}

void add_mnist(Registry<DatasetLoader>& registry) {
  const std::vector<KnownFile> known = {
      {"train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
       "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971"},
      {"train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
       "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203"},
      {"t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
       "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be"},
      {"t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
       "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b"}};
  add(registry,
      {.name = "mnist",
       .summary = "handwritten digits, 28 x 28 grey, 10 classes, 60000 + 10000 images",
       .citation = "LeCun et al., \"Gradient-based learning applied to document recognition\", Proceedings of the IEEE 1998"},
      {.folder = "mnist",
       .files = files_at("https://storage.googleapis.com/cvdf-datasets/mnist", known),
       .licence = "not stated",
       .homepage = "http://yann.lecun.com/exdb/mnist/"},
      {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

void add_fashion_mnist(Registry<DatasetLoader>& registry) {
  const std::vector<KnownFile> known = {
      {"train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
       "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7"},
      {"train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
       "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056"},
      {"t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
       "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa"},
      {"t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
       "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05"}};
  add(registry,
      {.name = "fashion_mnist",
       .summary = "articles of clothing, 28 x 28 grey, 10 classes, 60000 + 10000 images",
       .citation = "Xiao et al., \"Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms\", 2017"},
      {.folder = "fashion_mnist",
       .files = files_at("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", known),
       .licence = "MIT",
       .homepage = "https://github.com/zalandoresearch/fashion-mnist",
       .package = "dataset-fashion-mnist",
       .package_folders = {"/usr/share/datasets/fashion-mnist"}},
      {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

void add_to(Registry<DatasetLoader>& registry) {
  add_mnist(registry);
  add_fashion_mnist(registry);
}

}  // namespace holdfast::data::mnist
