#include "holdfast/core/image.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "holdfast/core/csv.h"
#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/outside.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

using Pixels = std::vector<std::uint8_t>;

Image ppm(std::string_view text) {
  return parse_ppm(as_bytes(text), "x.ppm");
}

Image gradient(std::int64_t height, std::int64_t width, std::int64_t channels) {
  Image image{.height = height, .width = width, .channels = channels};
  for (std::int64_t i = 0; i < height * width * channels; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 7 % 256));
  return image;
}

Pixels raw_pixels(const std::string& path) {
  const std::string text = read_text(path);
  return Pixels(text.begin(), text.end());
}

int largest_difference(const Pixels& a, const Pixels& b) {
  if (a.size() != b.size()) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(Ppm, ReadsColoursAndGreysWithCommentsAnywhereInTheHeader) {
  const Image color = ppm("P6 # made by hand\n2#wide\n1\n#and\n255\nabcdef");
  EXPECT_EQ(color.width, 2);
  EXPECT_EQ(color.height, 1);
  EXPECT_EQ(color.channels, 3);
  EXPECT_EQ(color.pixels, (Pixels{'a', 'b', 'c', 'd', 'e', 'f'}));
  const Image grey = ppm("P5\n1 2 255 #\n");  // the first pixel is the # itself
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.pixels, (Pixels{'#', '\n'}));
}

TEST(Ppm, ScalesSmallerMaximaTo255) {
  EXPECT_EQ(ppm(std::string_view("P5 3 1 3\n\0\1\3", 12)).pixels, (Pixels{0, 85, 255}));
  EXPECT_ERROR(ppm("P5 1 1 3\n\4"), kInput, "a sample of 4 is above the header's maximum of 3");
}

TEST(Ppm, BadHeadersAreOneSentenceAndNoAllocation) {
  EXPECT_ERROR(ppm("P3 1 1 255\n0 0 0"), kInput, "x.ppm: not a binary PPM or PGM");
  EXPECT_ERROR(ppm("P6"), kInput, "no width");
  EXPECT_ERROR(ppm("P6 4 # never ends"), kInput, "no height");
  EXPECT_ERROR(ppm("P6 0 4 255\n"), kInput, "the image is empty");
  EXPECT_ERROR(ppm("P6 1 1 65535\nabcdef"), kInput, "a maximum of 65535 is not supported");
  EXPECT_ERROR(ppm("P6 1 1 255"), kInput, "not followed by a blank");
  EXPECT_ERROR(ppm("P6 2 1 255\nabc"), kInput, "truncated: 2 x 1 pixels need 6 bytes, 3 are there");
  EXPECT_ERROR(ppm("P6 4000000000 4000000000 255\n"), kInput, "more than the limit of 2^26");
  EXPECT_ERROR(ppm("P6 99999999999999999999 1 255\n"), kInput, "width in the header is too large");
  EXPECT_ERROR(ppm("P6 8192 8192 255\n"), kInput, "truncated");
}

TEST(Png, WhatIsWrittenReadsBack) {
  for (const std::int64_t channels : {1, 3}) {
    const Image image = gradient(13, 7, channels);
    const Image read = decode_image(encode_png(image), "x.png");
    EXPECT_EQ(read.height, 13);
    EXPECT_EQ(read.width, 7);
    EXPECT_EQ(read.channels, channels);
    EXPECT_EQ(read.pixels, image.pixels);
  }
}

TEST(Png, EveryTruncationAndEveryDamagedByteIsAnErrorOrTheSameImage) {
  const Image image = gradient(5, 4, 3);
  const std::vector<std::byte> file = encode_png(image);
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_ERROR(decode_png(std::span(file).first(size), "x.png"), kInput, "x.png: ");
  }
  for (std::size_t place = 0; place < file.size(); ++place) {
    std::vector<std::byte> damaged = file;
    damaged[place] ^= std::byte{0x55};
    try {
      EXPECT_EQ(decode_png(damaged, "x.png").pixels, image.pixels) << "byte " << place;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
    }
  }
}

TEST(Png, AHeaderThatClaimsMorePixelsThanTheFileCanHoldIsRefusedBeforeMemoryIsTaken) {
  // IHDR of 8192 x 8192 RGB with a right checksum, and nothing behind it but an empty IDAT.
  const std::string_view file(
      "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x20\0\0\0\x20\0\x08\x02\0\0\0\xfd\xc8\x5d\x0e\0\0\0\0IDAT\x35\xaf\x06\x1e", 45);
  EXPECT_ERROR(decode_png(as_bytes(file), "x.png"), kInput, "x.png: truncated: 45 bytes cannot hold 8192 x 8192 pixels");
}

TEST(Image, IsKnownByItsFirstBytes) {
  EXPECT_ERROR(decode_image(as_bytes("GIF89a"), "x.gif"), kInput, "x.gif: neither PNG, JPEG nor binary PPM");
  EXPECT_ERROR(decode_image({}, "empty"), kInput, "empty: neither");
  EXPECT_ERROR(read_image("no/such.png"), kInput, "no/such.png");
}

TEST(Image, GreyAndColourConvertIntoEachOther) {
  const Image grey = gradient(2, 3, 1);
  const Image color = decode_image(encode_png(grey), "x.png", 3);
  EXPECT_EQ(color.channels, 3);
  for (std::size_t i = 0; i < grey.pixels.size(); ++i) EXPECT_EQ(color.pixels[3 * i + 1], grey.pixels[i]);
  EXPECT_EQ(decode_image(encode_png(color), "x.png", 1).pixels, grey.pixels);
}

TEST(Image, WritesPngFiles) {
  const TempFolder folder;
  const Image image = gradient(9, 9, 3);
  write_png(folder / "a.png", image);
  EXPECT_EQ(read_image(folder / "a.png").pixels, image.pixels);
}

TEST(Resize, WeighsByTheTriangleOfTheShrinkage) {
  // From 4 to 2 pixels the triangle is 2 wide on either side: weights 3/7, 3/7, 1/7 of the first three pixels.
  const Image row{.height = 1, .width = 4, .channels = 1, .pixels = {0, 70, 70, 140}};
  EXPECT_EQ(resize(row, 1, 2).pixels, (Pixels{40, 100}));
  const Image column{.height = 4, .width = 1, .channels = 1, .pixels = {0, 70, 70, 140}};
  EXPECT_EQ(resize(column, 2, 1).pixels, (Pixels{40, 100}));
}

TEST(Resize, GrowsByLinearInterpolationAndRepeatsTheBorder) {
  const Image row{.height = 1, .width = 2, .channels = 1, .pixels = {0, 100}};
  EXPECT_EQ(resize(row, 1, 4).pixels, (Pixels{0, 25, 75, 100}));
}

TEST(Resize, KeepsAnEvenColour) {
  Image image{.height = 31, .width = 17, .channels = 3};
  for (int i = 0; i < 31 * 17; ++i) image.pixels.insert(image.pixels.end(), {255, 128, 3});
  const Image resized = resize(image, 12, 29);
  for (std::size_t i = 0; i < resized.pixels.size(); i += 3) {
    ASSERT_EQ(Pixels(resized.pixels.begin() + static_cast<std::ptrdiff_t>(i),
                     resized.pixels.begin() + static_cast<std::ptrdiff_t>(i + 3)),
              (Pixels{255, 128, 3}));
  }
}

TEST(Resize, TheSameSizeIsTheSameImage) {
  const Image image = gradient(6, 5, 3);
  EXPECT_EQ(resize(image, 6, 5).pixels, image.pixels);
}

TEST(Resize, RefusesSizesThatAreNone) {
  EXPECT_ERROR(resize(gradient(2, 2, 3), 0, 5), kUsage, "cannot resize an image to 5 x 0 pixels");
  EXPECT_ERROR(resize_and_crop(gradient(2, 2, 3), -1), kUsage, "-1 x -1");
  EXPECT_ERROR(resize_and_crop(gradient(2, 2, 3), std::int64_t{1} << 60), kUsage, "cannot resize");
}

// The script writes one file of each kind and what Pillow reads from it.
class Pillow : public testing::Test {
 protected:
  void SetUp() override {
    const auto python = python_with("numpy, PIL");
    if (!python) GTEST_SKIP() << "needs Python with numpy and Pillow in .venv, or HOLDFAST_PYTHON";
    ASSERT_EQ(run_python(*python, "tests/core/pillow_reference.py", folder_.path()), 0);
  }
  CsvTable cases(const std::string& name) const {
    CsvTable table = read_csv(folder_ / name);
    EXPECT_FALSE(table.rows.empty()) << name;
    return table;
  }
  std::string file(const std::string& name) const { return folder_ / name; }

  TempFolder folder_;
};

TEST_F(Pillow, ReadsTheSamePixelsFromEveryKindOfFile) {
  const CsvTable table = cases("decode.csv");
  EXPECT_EQ(table.rows.size(), 20U);
  for (const auto& row : table.rows) {
    SCOPED_TRACE(row[0]);
    const Image image = read_image(file(row[0]));
    EXPECT_EQ(image.height, std::stoi(row[1]));
    EXPECT_EQ(image.width, std::stoi(row[2]));
    EXPECT_EQ(image.channels, std::stoi(row[3]));
    EXPECT_LE(largest_difference(image.pixels, raw_pixels(file(row[4]))), std::stoi(row[5]));
  }
}

TEST_F(Pillow, TruncatedFilesOfEveryKindAreRefused) {
  for (const auto& row : cases("decode.csv").rows) {
    SCOPED_TRACE(row[0]);
    const Bytes whole = read_bytes(file(row[0]));
    for (const double share : {0.1, 0.5, 0.9}) {
      const auto size = static_cast<std::size_t>(share * static_cast<double>(whole.size()));
      EXPECT_ERROR(decode_image(std::span(whole).first(size), row[0]), kInput, row[0]);
    }
  }
}

TEST_F(Pillow, ResizesToTheSamePixels) {
  for (const auto& row : cases("resize.csv").rows) {
    SCOPED_TRACE(row[0] + " to " + row[1] + " x " + row[2]);
    const Image resized = resize(read_image(file(row[0])), std::stoi(row[1]), std::stoi(row[2]));
    EXPECT_LE(largest_difference(resized.pixels, raw_pixels(file(row[3]))), std::stoi(row[4]));
  }
}

TEST_F(Pillow, CropsTheSameMiddle) {
  for (const auto& row : cases("crop.csv").rows) {
    SCOPED_TRACE(row[0] + " to " + row[1]);
    const Image cropped = resize_and_crop(read_image(file(row[0])), std::stoi(row[1]));
    EXPECT_LE(largest_difference(cropped.pixels, raw_pixels(file(row[2]))), std::stoi(row[3]));
  }
}

TEST_F(Pillow, MakesTheSameGreys) {
  for (const auto& row : cases("to_grey.csv").rows) EXPECT_EQ(read_image(file(row[0]), 1).pixels, raw_pixels(file(row[1])));
}

TEST(Jpeg, ReadsPhotographsWithTheOdditiesOfTheirWriters) {
  SKIP_WITHOUT_DATA(folder, "imagenet_samples");
  int count = 0, brightest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".JPEG" || ++count > 40) continue;
    const Image image = read_image(entry.path().string(), 3);
    EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(image.height * image.width * 3)) << entry.path();
    brightest = std::max<int>(brightest, *std::max_element(image.pixels.begin(), image.pixels.end()));
  }
  EXPECT_EQ(count, 100);
  EXPECT_EQ(brightest, 255);
}

}  // namespace
}  // namespace holdfast
