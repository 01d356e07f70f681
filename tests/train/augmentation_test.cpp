// Random changes of training images, against torch's padding, cutting and flipping.
#include "holdfast/train/augmentation.h"

#include <algorithm>

#include "support/errors.h"
#include "support/small_models.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

constexpr std::int64_t kSide = 9, kPad = 3;

at::Tensor images(std::int64_t count) {
  return testing_support::normal_tensor({count, 3, kSide, kSide}, 1);
}

at::Tensor augmented(const at::Tensor& x, const at::Tensor& ids, std::int64_t epoch = 0, std::uint64_t seed = 1) {
  return augmentations().make("crop_flip(pad=3)")->apply(x, ids, seed, epoch);
}

// Every image that crop_flip may make of one: (2 pad + 1)^2 places, flipped or not.
std::vector<at::Tensor> all_of(const at::Tensor& image) {
  const at::Tensor padded = at::reflection_pad2d(image.unsqueeze(0), {kPad, kPad, kPad, kPad})[0];
  std::vector<at::Tensor> all;
  for (std::int64_t down = 0; down <= 2 * kPad; ++down) {
    for (std::int64_t right = 0; right <= 2 * kPad; ++right) {
      const at::Tensor cut = padded.narrow(1, down, kSide).narrow(2, right, kSide);
      all.push_back(cut);
      all.push_back(cut.flip(2));
    }
  }
  return all;
}

TEST(CropFlip, MovesAnImageOverItsMirroredBorderAndFlipsIt) {
  const at::Tensor x = images(1).expand({600, 3, kSide, kSide});
  const at::Tensor made = augmented(x, at::arange(600, at::kLong));
  const std::vector<at::Tensor> expected = all_of(x[0]);
  std::vector<std::int64_t> met(expected.size());
  for (std::int64_t i = 0; i < 600; ++i) {
    const auto same = std::ranges::find_if(expected, [&](const at::Tensor& one) { return at::equal(one, made[i]); });
    ASSERT_NE(same, expected.end()) << i;
    ++met[static_cast<std::size_t>(same - expected.begin())];
  }
  // 98 images, each about six times: all but a few are met, and half are flipped.
  EXPECT_GT(std::ranges::count_if(met, [](std::int64_t times) { return times > 0; }), 90);
  std::int64_t flipped = 0;
  for (std::size_t i = 1; i < met.size(); i += 2) flipped += met[i];
  EXPECT_NEAR(static_cast<double>(flipped), 300, 60);
}

TEST(CropFlip, DependsOnSeedEpochAndSampleAlone) {
  const at::Tensor x = images(20), ids = at::arange(20, at::kLong);
  const at::Tensor whole = augmented(x, ids);
  EXPECT_TRUE(at::equal(augmented(x.slice(0, 5, 8), ids.slice(0, 5, 8)), whole.slice(0, 5, 8)));
  EXPECT_TRUE(at::equal(augmented(x, ids), whole));
  EXPECT_FALSE(at::equal(augmented(x, ids, 1), whole));
  EXPECT_FALSE(at::equal(augmented(x, ids, 0, 2), whole));
  EXPECT_FALSE(at::equal(augmented(x, ids + 20), whole));
}

TEST(CropFlip, WithoutRoomAndFlipsChangesNothing) {
  const at::Tensor x = images(4);
  EXPECT_TRUE(at::equal(augmentations().make("crop_flip(pad=0,flip=false)")->apply(x, at::arange(4, at::kLong), 1, 0), x));
  EXPECT_TRUE(at::equal(augmentations().make("none")->apply(x, at::arange(4, at::kLong), 1, 0), x));
}

TEST(CropFlip, IsForSingleImages) {
  TrainOptions options = quick();
  options.augmentation = "crop_flip";
  EXPECT_ERROR(resolved(two_clouds(), options), kUsage, "crop_flip changes images");
  options.augmentation = "crop_flop";
  EXPECT_ERROR(resolved(two_clouds(), options), kUsage, "did you mean 'crop_flip'?");
  options.augmentation = "crop_flip(pad=6)";
  EXPECT_ERROR(resolved(two_clouds(10, {1, 6, 6}), options), kUsage, "crop_flip(pad=6)");
}

// Its name is among what decides the weights, and is left out where there is none: trainings keep their names.
TEST(CropFlip, ChangesWhatATrainingIs) {
  TrainOptions options = quick(2);
  const Dataset dataset = two_clouds(40, {1, 6, 6});
  const TrainResult plain = train_network(dataset, options);
  EXPECT_FALSE(to_json(plain.options).contains("augmentation"));
  options.augmentation = "crop_flip(pad=1)";
  const TrainResult first = train_network(dataset, options), second = train_network(dataset, options);
  EXPECT_EQ(to_json(first.options)["augmentation"], "crop_flip(pad=1)");
  EXPECT_TRUE(same_weights(first.network, second.network));
  EXPECT_FALSE(same_weights(first.network, plain.network));
}

}  // namespace
}  // namespace holdfast::train
