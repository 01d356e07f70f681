#include "holdfast/train/augmentation.h"

#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {
namespace {

class None final : public Augmentation {
 public:
  explicit None(const Options&) {}
  void check(const Schema&) const override {}
  at::Tensor apply(const at::Tensor& inputs, const at::Tensor&, std::uint64_t, std::int64_t) const override { return inputs; }
};

class CropFlip final : public Augmentation {
 public:
  explicit CropFlip(const Options& options) : pad_(options.integer("pad")), flip_(options.flag("flip")) {}

  void check(const Schema& schema) const override {
    const Layout& layout = schema.layout;
    if (layout.kind != Layout::Kind::kGrid || layout.sides != 1)
      usage_error("crop_flip changes images; these samples are of another kind: {}", layout.describe());
    if (pad_ >= layout.height || pad_ >= layout.width)
      usage_error("crop_flip(pad={}): images of {} x {} pixels can be moved by less than their size", pad_, layout.height,
                  layout.width);
  }

  at::Tensor apply(const at::Tensor& inputs, const at::Tensor& ids, std::uint64_t seed, std::int64_t epoch) const override {
    const std::int64_t count = inputs.size(0), height = inputs.size(2), width = inputs.size(3);
    at::Tensor rows = at::empty({count, height}, at::kLong), columns = at::empty({count, width}, at::kLong);
    const auto* id = ids.const_data_ptr<std::int64_t>();
    const std::uint64_t of_epoch = derived_seed(seed, "train.augmentation", static_cast<std::uint64_t>(epoch));
    for (std::int64_t i = 0; i < count; ++i) {
      RandomStream random(of_epoch, "train.augmentation", static_cast<std::uint64_t>(id[i]));
      const std::int64_t down = shift(random), right = shift(random);
      const bool flipped = (random.bits() & 1) != 0 && flip_;
      fill(rows.data_ptr<std::int64_t>() + i * height, height, down, false);
      fill(columns.data_ptr<std::int64_t>() + i * width, width, right, flipped);
    }
    const auto here = [&](const at::Tensor& index) { return index.to(inputs.device()); };
    const at::Tensor image = here(at::arange(count)).view({count, 1, 1, 1});
    const at::Tensor channel = here(at::arange(inputs.size(1))).view({1, -1, 1, 1});
    return inputs.index({image, channel, here(rows).view({count, 1, height, 1}), here(columns).view({count, 1, 1, width})});
  }

 private:
  std::int64_t shift(RandomStream& random) const {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * pad_ + 1))) - pad_;
  }

  // Where each row or column of the new image comes from.
  static void fill(std::int64_t* from, std::int64_t size, std::int64_t shift, bool flipped) {
    for (std::int64_t i = 0; i < size; ++i) {
      std::int64_t at = (flipped ? size - 1 - i : i) + shift;
      if (at < 0) at = -at;  // mirrored at the border, which is not repeated
      if (at >= size) at = 2 * (size - 1) - at;
      from[i] = at;
    }
  }

  std::int64_t pad_;
  bool flip_;
};

Registry<Augmentation> builtin_augmentations() {
  Registry<Augmentation> registry("augmentation");
  registry.add<None>({.name = "none", .summary = "training samples as they are"});
  registry.add<CropFlip>({.name = "crop_flip",
                          .summary = "images are moved by a few pixels, and every second one is flipped left to right",
                          .citation = "He et al., Deep Residual Learning for Image Recognition, CVPR 2016, section 4.2",
                          .options = {{"pad", 4, at_least(0), "pixels by which an image is moved at most, each way"},
                                      {"flip", true, anything(), "whether images are flipped"}}});
  return registry;
}

}  // namespace

const Registry<Augmentation>& augmentations() {
  static const Registry<Augmentation> registry = builtin_augmentations();
  return registry;
}

}  // namespace holdfast::train
