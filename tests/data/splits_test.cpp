#include "holdfast/data/splits.h"

#include <algorithm>
#include <set>

#include "support/errors.h"

namespace holdfast::data {
namespace {

using Positions = std::vector<std::int64_t>;

// 1000 samples: 700 of class 0, 250 of class 1, 50 of class 7, mixed.
Positions uneven_labels() {
  Positions labels;
  for (std::int64_t i = 0; i < 1000; ++i) labels.push_back(i % 20 == 0 ? 7 : i % 4 == 1 ? 1 : 0);
  return labels;
}

std::int64_t count_class(const Positions& part, const Positions& labels, std::int64_t label) {
  return std::count_if(part.begin(), part.end(), [&](std::int64_t i) { return labels[static_cast<std::size_t>(i)] == label; });
}

void expect_partition(const Split& split, std::int64_t count) {
  Positions all;
  for (const Positions* part : {&split.train, &split.validation, &split.test}) {
    EXPECT_TRUE(std::is_sorted(part->begin(), part->end()));
    all.insert(all.end(), part->begin(), part->end());
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(static_cast<std::int64_t>(all.size()), count);
  for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], i);
}

bool same(const Split& a, const Split& b) {
  return a.train == b.train && a.validation == b.validation && a.test == b.test;
}

TEST(StratifiedSplit, PartitionsInTheSharesAskedForWithEveryClassInProportion) {
  const Positions labels = uneven_labels();
  const Split split = stratified_split(labels, 3);
  expect_partition(split, 1000);
  EXPECT_EQ(split.validation.size(), 200U);
  EXPECT_EQ(split.test.size(), 200U);
  for (const std::int64_t label : {0, 1, 7}) {
    const double of_class = static_cast<double>(std::count(labels.begin(), labels.end(), label));
    EXPECT_NEAR(static_cast<double>(count_class(split.test, labels, label)), 0.2 * of_class, 1);
    EXPECT_NEAR(static_cast<double>(count_class(split.validation, labels, label)), 0.2 * of_class, 1);
  }
}

TEST(StratifiedSplit, IsTheSameForASeedAndAnotherForAnother) {
  const Positions labels = uneven_labels();
  EXPECT_TRUE(same(stratified_split(labels, 3), stratified_split(labels, 3)));
  EXPECT_NE(stratified_split(labels, 3).test, stratified_split(labels, 4).test);
}

TEST(StratifiedSplit, PartitionsIn60To20To20) {
  const Split split = stratified_split(Positions(103), 0);
  expect_partition(split, 103);
  EXPECT_EQ(split.validation.size(), 21U);
  EXPECT_EQ(split.test.size(), 21U);
}

TEST(StratifiedSplit, SharesThatLeaveNothingForTrainingAreAllowedAndMoreAreNot) {
  EXPECT_TRUE(stratified_split(Positions(11), 0, {.validation = 0.5, .test = 0.5}).train.empty());
  expect_partition(stratified_split(Positions(11), 0, {.validation = 0.5, .test = 0.5}), 11);
  EXPECT_ERROR(stratified_split(Positions(10), 0, {.validation = 0.6, .test = 0.5}), kUsage, "validation 0.6 and test 0.5");
  EXPECT_ERROR(stratified_split(Positions(10), 0, {.validation = -0.1, .test = 0.5}), kUsage, "must be 0 or more");
}

TEST(OfficialSplit, KeepsTheTestSetAndDividesTheRest) {
  const Positions labels = uneven_labels();
  const Split split = official_split(labels, 800, 1);
  expect_partition(split, 1000);
  ASSERT_EQ(split.test.size(), 200U);
  EXPECT_EQ(split.test.front(), 800);
  EXPECT_EQ(split.validation.size(), 160U);
}

TEST(OfficialSplitByGroup, NeverDividesAGroup) {
  // 60 groups of 5 frames, frames of one group apart from each other; 3 classes; 40 test samples.
  Positions groups, labels;
  for (std::int64_t i = 0; i < 300; ++i) groups.push_back(i % 60);
  for (std::int64_t i = 0; i < 340; ++i) labels.push_back(i % 60 % 3);
  const Split split = official_split_by_group(groups, labels, 40, 9);
  expect_partition(split, 340);
  EXPECT_EQ(split.test.size(), 40U);
  EXPECT_EQ(split.validation.size(), 60U);
  std::set<std::int64_t> training;
  for (const std::int64_t i : split.train) training.insert(groups[static_cast<std::size_t>(i)]);
  for (const std::int64_t i : split.validation) EXPECT_FALSE(training.contains(groups[static_cast<std::size_t>(i)]));
  for (const std::int64_t label : {0, 1, 2}) EXPECT_EQ(count_class(split.validation, labels, label), 20);
}

TEST(FoldSplit, EverySampleIsTestedOnceAndValidatedOnceOverTheFiveFolds) {
  const Positions labels = uneven_labels();
  std::vector<int> tested(1000), validated(1000);
  for (std::int64_t fold = 0; fold < kFolds; ++fold) {
    const Split split = fold_split(labels, 5, fold);
    expect_partition(split, 1000);
    EXPECT_EQ(split.train.size(), 600U);
    EXPECT_EQ(count_class(split.test, labels, 7), 10);
    for (const std::int64_t i : split.test) ++tested[static_cast<std::size_t>(i)];
    for (const std::int64_t i : split.validation) ++validated[static_cast<std::size_t>(i)];
  }
  EXPECT_EQ(tested, std::vector<int>(1000, 1));
  EXPECT_EQ(validated, std::vector<int>(1000, 1));
}

TEST(FoldSplit, RefusesAFoldThatDoesNotExist) {
  EXPECT_ERROR(fold_split(uneven_labels(), 0, 5), kUsage, "fold 5 does not exist: there are 5, 0 to 4");
  EXPECT_ERROR(fold_split(uneven_labels(), 0, -1), kUsage, "fold -1");
}

}  // namespace
}  // namespace holdfast::data
