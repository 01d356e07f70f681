#include "images.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"

namespace holdfast::data {
namespace {

constexpr std::int64_t kImagesAtOnce = 32;      // a thread's share of images
constexpr std::int64_t kBytesAtOnce = 1 << 20;  // a thread's share of bytes

void to_unit(const std::uint8_t* bytes, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]) / 255.0f;
}

void to_unit_planes(const std::uint8_t* pixels, std::int64_t area, std::int64_t channels, float* out) {
  if (channels == 1) return to_unit(pixels, area, out);
  for (std::int64_t i = 0; i < area; ++i) {
    out[i] = static_cast<float>(pixels[3 * i]) / 255.0f;
    out[area + i] = static_cast<float>(pixels[3 * i + 1]) / 255.0f;
    out[2 * area + i] = static_cast<float>(pixels[3 * i + 2]) / 255.0f;
  }
}

}  // namespace

at::Tensor new_images(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
  at::Tensor tensor = at::empty({count, channels, height, width}, at::kFloat);
  constexpr std::uintptr_t kLargePage = std::uintptr_t{1} << 21;
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data_ptr()), end = begin + tensor.nbytes();
  const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  // A wish; a system that does not grant it is slower, not wrong.
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  return tensor;
}

void fill_unit(const at::Tensor& out, std::span<const std::uint8_t> bytes) {
  HOLDFAST_CHECK(out.is_contiguous() && out.numel() == static_cast<std::int64_t>(bytes.size()));
  float* values = out.data_ptr<float>();
  for_each_tile(out.numel(), kBytesAtOnce, 0,
                [&](const Tile& tile) { to_unit(bytes.data() + tile.begin, tile.size(), values + tile.begin); });
}

void fill_unit_planes(const at::Tensor& out, std::span<const std::uint8_t> bytes) {
  HOLDFAST_CHECK(out.is_contiguous() && out.numel() == static_cast<std::int64_t>(bytes.size()));
  const std::int64_t channels = out.size(1), area = out.size(2) * out.size(3), each = channels * area;
  float* values = out.data_ptr<float>();
  for_each_tile(out.size(0), kImagesAtOnce, 0, [&](const Tile& tile) {
    for (std::int64_t i = tile.begin; i < tile.end; ++i) {
      to_unit_planes(bytes.data() + i * each, area, channels, values + i * each);
    }
  });
}

at::Tensor decode_images(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width,
                         const std::function<Image(std::int64_t)>& image, const std::function<std::string(std::int64_t)>& where) {
  at::Tensor tensor = new_images(count, channels, height, width);
  float* values = tensor.data_ptr<float>();
  for_each_tile(count, kImagesAtOnce, 0, [&](const Tile& tile) {
    for (std::int64_t i = tile.begin; i < tile.end; ++i) {
      const Image decoded = image(i);
      if (decoded.height != height || decoded.width != width) {
        input_error("{} is {} x {} pixels, not {} x {}", where(i), decoded.width, decoded.height, width, height);
      }
      HOLDFAST_CHECK(decoded.channels == channels);
      to_unit_planes(decoded.pixels.data(), height * width, channels, values + i * channels * height * width);
    }
  });
  return tensor;
}

Image cropped(Image image, std::int64_t size) {
  return image.height == size && image.width == size ? std::move(image) : resize_and_crop(image, size);
}

OptionSpec train_limit_option() {
  return {"train_limit", 0, at_least(0), "use only the first so many images of the training set; 0: all"};
}
OptionSpec test_limit_option() {
  return {"test_limit", 0, at_least(0), "use only the first so many images of the test set; 0: all"};
}

Dataset image_dataset(at::Tensor inputs, const std::vector<std::int64_t>& labels, Split split, std::vector<std::string> classes) {
  Dataset dataset;
  dataset.schema = Schema::of(Layout::grid(inputs.size(1), inputs.size(2), inputs.size(3)));
  dataset.schema.classes = std::move(classes);
  dataset.schema.range = {0.0, 1.0};
  dataset.inputs = std::move(inputs);
  dataset.labels = at::tensor(labels, at::kLong);
  dataset.train = std::move(split.train);
  dataset.validation = std::move(split.validation);
  dataset.test = std::move(split.test);
  return dataset;
}

Dataset image_dataset(at::Tensor inputs, std::vector<std::int64_t> labels, std::int64_t train_count,
                      std::vector<std::string> classes, std::uint64_t seed) {
  return image_dataset(std::move(inputs), labels, official_split(labels, train_count, seed), std::move(classes));
}

}  // namespace holdfast::data
