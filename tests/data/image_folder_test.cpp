// The user's own images.
#include <cstdlib>

#include "holdfast/core/files.h"
#include "holdfast/core/image.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::data {
namespace {

using ::testing::ElementsAre;

Image plain(std::int64_t height, std::int64_t width, std::vector<std::uint8_t> colour) {
  Image image{.height = height, .width = width, .channels = std::ssize(colour), .pixels = {}};
  for (std::int64_t i = 0; i < height * width; ++i) image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
  return image;
}

class ImageFolder : public ::testing::Test {
 protected:
  void write(const std::string& name, const Image& image) const {
    make_folders((folder / name).substr(0, (folder / name).rfind('/')));
    write_png(folder / name, image);
  }
  std::string call(const std::string& more = "") const { return "image_folder(path=" + folder.path() + more + ")"; }

  TempFolder folder;
};

TEST_F(ImageFolder, ClassesAreFoldersInTheOrderOfNames) {
  write("dog/1.png", plain(4, 6, {255, 0, 51}));
  write("cat/b.png", plain(4, 6, {0, 102, 0}));
  write("cat/a.png", plain(4, 6, {204}));  // grey becomes RGB
  write_atomic(folder / "cat/notes.txt", "not an image");
  write_atomic(folder / "README.md", "not an image");
  const Dataset dataset = load_dataset(call());
  EXPECT_EQ(dataset.inputs.sizes(), at::IntArrayRef({3, 3, 4, 6}));
  EXPECT_THAT(dataset.schema.classes, ElementsAre("cat", "dog"));
  EXPECT_TRUE(at::equal(dataset.labels, at::tensor({0, 0, 1}, at::kLong)));
  const at::Tensor colours = at::tensor({0.8F, 0.8F, 0.8F, 0.F, 0.4F, 0.F, 1.F, 0.F, 0.2F}).view({3, 3, 1, 1});
  EXPECT_TRUE(at::allclose(dataset.inputs, colours.expand({3, 3, 4, 6})));
}

TEST_F(ImageFolder, TrainAndTestFoldersAreTheParts) {
  for (const char* name : {"train/a/1.png", "train/a/2.png", "train/b/1.png", "test/b/9.png"})
    write(name, plain(2, 2, {9, 9, 9}));
  const Dataset dataset = load_dataset(call());
  EXPECT_THAT(dataset.test, ElementsAre(3));
  EXPECT_EQ(dataset.train.size() + dataset.validation.size(), 3u);
  EXPECT_EQ(dataset.labels[3].item<std::int64_t>(), 1);
}

TEST_F(ImageFolder, AnArchiveOfItReadsTheSame) {
  for (const char* name : {"a/1.png", "a/2.png", "b/1.png"}) write(name, plain(3, 5, {9, 99, 199}));
  const std::string pack = "cd '" + folder.path() + "' && tar czf all.tar.gz a b && python3 -m zipfile -c all.zip a b";
  ASSERT_EQ(std::system(pack.c_str()), 0);
  const Dataset loose = load_dataset(call());
  for (const char* archive : {"all.tar.gz", "all.zip"}) {
    const Dataset packed = load_dataset("image_folder(path=" + (folder / archive) + ")");
    EXPECT_TRUE(at::equal(packed.inputs, loose.inputs)) << archive;
    EXPECT_TRUE(at::equal(packed.labels, loose.labels)) << archive;
  }
}

TEST_F(ImageFolder, ASizeScalesTheShorterSideAndTakesTheMiddle) {
  write("a/wide.png", plain(10, 40, {100, 150, 200}));
  write("a/tall.png", plain(50, 20, {100, 150, 200}));
  EXPECT_ERROR(load_dataset(call()), kInput, "wide.png is 40 x 10 pixels, not 20 x 50");
  EXPECT_EQ(load_dataset(call(",size=8")).inputs.sizes(), at::IntArrayRef({2, 3, 8, 8}));
  EXPECT_EQ(load_dataset(call(",size=8,colour=grey")).inputs.sizes(), at::IntArrayRef({2, 1, 8, 8}));
}

TEST_F(ImageFolder, ADamagedImageIsNamed) {
  write("a/good.png", plain(30, 30, {1, 2, 3}));
  const Bytes whole = read_bytes(folder / "a/good.png");
  write_atomic(folder / "a/half.png", std::span(whole).first(whole.size() / 2));
  EXPECT_ERROR(load_dataset(call()), kInput, "a/half.png");
  write_atomic(folder / "a/half.png", "no image at all");
  EXPECT_ERROR(load_dataset(call()), kInput, "a/half.png: neither PNG, JPEG nor");
}

TEST_F(ImageFolder, WithoutImagesOrPathItSaysWhatItNeeds) {
  write_atomic(folder / "loose.png", "an image must lie in the folder of its class");
  EXPECT_ERROR(load_dataset(call()), kInput, "has no PNG, JPEG or PPM images in folders");
  EXPECT_ERROR(load_dataset("image_folder"), kUsage, "image_folder(path=FOLDER)");
  EXPECT_ERROR(load_dataset("image_folder(path=" + (folder / "nowhere") + ")"), kInput, "no such file or folder");
}

}  // namespace
}  // namespace holdfast::data
