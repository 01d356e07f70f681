#include "holdfast/data/dataset.h"

#include <limits>
#include <set>

#include "holdfast/core/torch.h"
#include "support/errors.h"

namespace holdfast::data {
namespace {

Dataset small_dataset() {
  Dataset dataset;
  dataset.name = "small";
  dataset.inputs = at::arange(12, at::kFloat).view({4, 3});
  dataset.labels = at::tensor({0, 1, 1, 0}, at::kLong);
  dataset.schema = Schema::of(Layout::vector(3));
  dataset.schema.classes = {"no", "yes"};
  dataset.train = {0, 2};
  dataset.validation = {3};
  dataset.test = {1};
  return dataset;
}

TEST(Dataset, GivesRowsOfAPart) {
  const Dataset dataset = small_dataset();
  EXPECT_EQ(dataset.rows("train"), std::vector<std::int64_t>({0, 2}));
  EXPECT_EQ(dataset.rows("all"), std::vector<std::int64_t>({0, 1, 2, 3}));
  EXPECT_TRUE(at::equal(dataset.inputs_of({2, 1}), at::tensor({6.F, 7.F, 8.F, 3.F, 4.F, 5.F}).view({2, 3})));
  EXPECT_TRUE(at::equal(dataset.labels_of({2, 3}), at::tensor({1, 0}, at::kLong)));
  EXPECT_ERROR(dataset.rows("tset"), kUsage, "unknown part 'tset' of a dataset (did you mean 'test'?)");
}

TEST(Datasets, EveryDownloadHasAKnownChecksumButOneWithoutFixedBytes) {
  std::set<std::string> without;
  std::size_t downloads = 0;
  for (const MethodInfo* info : datasets().infos()) {
    for (const Source::File& file : datasets().make(info->name)->source().files) {
      downloads += !file.url.empty();
      if (!file.url.empty() && file.sha256.empty()) without.insert(info->name);
    }
  }
  EXPECT_GT(downloads, 20U);
  EXPECT_EQ(without, std::set<std::string>{"imagenet_samples"});  // what was fetched first is remembered: fetch.cpp
}

TEST(Validate, AcceptsAGoodDatasetAndRefusesBadOnes) {
  validate(small_dataset());

  Dataset not_finite = small_dataset();
  not_finite.inputs[2][1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(validate(not_finite), kInput, "dataset small: sample 2 has a value that is not finite at position 1");

  Dataset wrong_label = small_dataset();
  wrong_label.labels[3] = 2;
  EXPECT_ERROR(validate(wrong_label), kInput, "dataset small: label 2 of sample 3 is not one of 2 classes");
  wrong_label.labels[3] = -1;
  EXPECT_ERROR(validate(wrong_label), kInput, "label -1 of sample 3");

  Dataset empty = small_dataset();
  empty.inputs = at::zeros({0, 3});
  empty.labels = at::zeros({0}, at::kLong);
  EXPECT_ERROR(validate(empty), kInput, "dataset small is empty");

  Dataset overlapping = small_dataset();
  overlapping.test = {2};
  EXPECT_ERROR(validate(overlapping), kBug, "");
}

TEST(Datasets, EveryOneSaysWhatItIsAndWhereItComesFrom) {
  std::set<std::string> own = {"csv", "npy", "idx", "image_folder", "pairs", "synthetic"};
  for (const MethodInfo* info : datasets().infos()) {
    EXPECT_FALSE(info->summary.empty()) << info->name;
    if (own.contains(info->name)) continue;
    const Source source = datasets().make(info->name)->source();
    EXPECT_FALSE(source.folder.empty()) << info->name;
    EXPECT_FALSE(source.files.empty()) << info->name;
    EXPECT_FALSE(source.licence.empty()) << info->name;
    EXPECT_FALSE(source.homepage.empty()) << info->name;
    EXPECT_FALSE(info->citation.empty()) << info->name;
  }
}

}  // namespace
}  // namespace holdfast::data
