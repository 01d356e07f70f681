// What the image datasets share: pixels to tensors, and the parts of a dataset with an official test set.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/image.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/splits.h"

namespace holdfast::data {

// Room for images, not yet filled, in large pages where the system has them: taking a big dataset's memory in small ones
// costs more time than filling it.
at::Tensor new_images(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width);

// Writes bytes in [0, 255] as floats in [0, 1] into a contiguous tensor of as many elements, on several threads.
void fill_unit(const at::Tensor& out, std::span<const std::uint8_t> bytes);
// Does the same for interleaved pixels: bytes are [N, H, W, C], the tensor is [N, C, H, W].
void fill_unit_planes(const at::Tensor& out, std::span<const std::uint8_t> bytes);

// Calls image(0) to image(count - 1) on several threads and puts the results into [count, channels, height, width] in
// [0, 1]. Another size is an error with where(i) in its message.
at::Tensor decode_images(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width,
                         const std::function<Image(std::int64_t)>& image, const std::function<std::string(std::int64_t)>& where);

// `image` as size x size: as it is when it is that already, otherwise its shorter side scaled and the middle taken.
Image cropped(Image image, std::int64_t size);

// The options that datasets with many images share.
OptionSpec train_limit_option();
OptionSpec test_limit_option();
struct Limits {
  std::int64_t train = 0, test = 0;  // at most the first so many; 0: all
  static Limits of(const Options& options) { return {options.integer("train_limit"), options.integer("test_limit")}; }
};
inline std::int64_t limited(std::int64_t count, std::int64_t limit) {
  return limit > 0 && limit < count ? limit : count;
}

// An image dataset of which the first `train_count` samples are for training and validation, the others for test.
Dataset image_dataset(at::Tensor inputs, std::vector<std::int64_t> labels, std::int64_t train_count,
                      std::vector<std::string> classes, std::uint64_t seed);
// Makes a dataset of images whose parts are given.
Dataset image_dataset(at::Tensor inputs, const std::vector<std::int64_t>& labels, Split split, std::vector<std::string> classes);

}  // namespace holdfast::data
