// Which samples are for training, validation and test. Depends on the seed and the labels alone. Needs no torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holdfast/core/stages.h"

namespace holdfast::data {

// Positions of each part: disjoint, ascending.
struct Split {
  std::vector<std::int64_t> train, validation, test;
};

// Shares of the whole; training takes what is left.
struct SplitShares {
  double validation = 0.2;
  double test = 0.2;
};

// Parts of exactly round(share * count) samples in which every class has its share, to within one sample a class.
Split stratified_split(std::span<const std::int64_t> labels, std::uint64_t seed, const SplitShares& shares = {});

// For datasets that come with a test set: the first `train_count` samples are stratified into training and validation,
// all the others are the test set.
Split official_split(std::span<const std::int64_t> labels, std::int64_t train_count, std::uint64_t seed, double validation = 0.2);
// Splits where samples belong together (frames of one track): the first groups.size() samples are divided by group,
// stratified by the class of each group's first sample, and the `test_count` samples after them are the test set.
Split official_split_by_group(std::span<const std::int64_t> groups, std::span<const std::int64_t> labels, std::int64_t test_count,
                              std::uint64_t seed, double validation = 0.2);

// Five stratified folds: number `fold` (0 to 4) is the test set, the next one validation, the other three training.
inline constexpr std::int64_t kFolds = 5;
Split fold_split(std::span<const std::int64_t> labels, std::uint64_t seed, std::int64_t fold);

}  // namespace holdfast::data
