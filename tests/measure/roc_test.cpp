#include "holdfast/measure/roc.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast::measure {
namespace {

struct Sample {
  std::vector<double> scores;
  std::vector<std::int64_t> labels;
};

// 40 samples with 11 different scores: most of them tied.
Sample tied_sample() {
  Sample sample;
  for (std::int64_t i = 0; i < 40; ++i) {
    sample.scores.push_back(static_cast<double>(i * 7919 % 11) / 10);
    sample.labels.push_back((i * 104729 + i * i) % 3 == 0);
  }
  return sample;
}

// sklearn.metrics.roc_auc_score and DeLong's formula written out over all pairs in NumPy:
//   k = (a[:,None] > b) + .5*(a[:,None] == b); sqrt(k.mean(1).var(ddof=1)/len(a) + k.mean(0).var(ddof=1)/len(b))
TEST(BinaryAuc, EqualsScikitLearnAndDeLongWithTies) {
  const Sample sample = tied_sample();
  const Interval area = binary_auc(sample.scores, sample.labels);
  EXPECT_EQ(area.mean, 0.4829059829059829);
  EXPECT_NEAR(area.low, 0.4829059829059829 - 1.959963984540054 * 0.09897715944696522, 1e-14);
  EXPECT_NEAR(area.high, 0.4829059829059829 + 1.959963984540054 * 0.09897715944696522, 1e-14);
  EXPECT_EQ(area.count, 40);
}

TEST(BinaryAuc, CountsPairs) {
  RandomStream random(3, "roc test");
  for (int round = 0; round < 50; ++round) {
    Sample sample;
    for (int i = 0; i < 25; ++i) {
      sample.scores.push_back(static_cast<double>(random.below(12)));
      sample.labels.push_back(i < 2 ? i : static_cast<std::int64_t>(random.below(2)));
    }
    double won = 0, pairs = 0;
    for (std::size_t i = 0; i < 25; ++i) {
      for (std::size_t j = 0; j < 25; ++j) {
        if (sample.labels[i] != 1 || sample.labels[j] != 0) continue;
        won += sample.scores[i] > sample.scores[j] ? 1 : (sample.scores[i] == sample.scores[j] ? 0.5 : 0);
        ++pairs;
      }
    }
    EXPECT_EQ(binary_auc(sample.scores, sample.labels).mean, won / pairs);
  }
}

TEST(BinaryAuc, PerfectRankingOfFewSamplesIsNotCertain) {
  const Interval area = binary_auc(std::vector<double>{0, 1, 2, 3, 4}, std::vector<std::int64_t>{0, 0, 0, 1, 1});
  EXPECT_EQ(area.mean, 1);
  EXPECT_EQ(area.high, 1);
  EXPECT_NEAR(area.low, std::sqrt(0.025), 1e-12);
  const Interval reversed = binary_auc(std::vector<double>{4, 3, 2, 1, 0}, std::vector<std::int64_t>{0, 0, 0, 1, 1});
  EXPECT_EQ(reversed.mean, 0);
  EXPECT_NEAR(reversed.high, 1 - std::sqrt(0.025), 1e-12);
}

TEST(BinaryAuc, ConstantScoresAreAHalf) {
  EXPECT_EQ(binary_auc(std::vector<double>(6, 2.5), std::vector<std::int64_t>{0, 1, 0, 1, 1, 1}).mean, 0.5);
}

TEST(BinaryAuc, IsUndefinedWithoutBothClasses) {
  EXPECT_TRUE(std::isnan(binary_auc(std::vector<double>{1, 2}, std::vector<std::int64_t>{1, 1}).mean));
}

TEST(MacroAuc, OfTwoOppositeColumnsIsTheBinaryOne) {
  const Sample sample = tied_sample();
  std::vector<double> columns;
  for (const double score : sample.scores) columns.insert(columns.end(), {-score, score});
  const Interval binary = binary_auc(sample.scores, sample.labels), macro = macro_auc(columns, sample.labels, 2);
  EXPECT_NEAR(macro.mean, binary.mean, 1e-15);
  EXPECT_NEAR(macro.low, binary.low, 1e-14);
  EXPECT_NEAR(macro.high, binary.high, 1e-14);
}

TEST(MacroAuc, LeavesOutClassesWithoutSamples) {
  const std::vector<double> scores = {1, 0, 9, 0, 1, 9, 0, 2, 9, 2, 3, 9};  // the third class never occurs
  const std::vector<std::int64_t> labels = {0, 1, 1, 0};
  // Class 0 scores 1, 2 against 0, 0: 1. Class 1 scores 1, 2 against 0, 3: 1/2.
  EXPECT_EQ(macro_auc(scores, labels, 3).mean, 0.75);
}

TEST(MacroAuc, SingleSampleOfAClassLeavesTheIntervalUndefined) {
  const Interval area = macro_auc(std::vector<double>{1, 0, 0, 0, 0, 1, 1, 0}, std::vector<std::int64_t>{0, 1, 1, 1}, 2);
  EXPECT_FALSE(std::isnan(area.mean));
  EXPECT_TRUE(std::isnan(area.low));
  EXPECT_TRUE(std::isnan(area.high));
}

// Three classes in a plane, the score of a class a noisy coordinate. Over many samplings the interval should contain the
// true area (its mean over all of them, which is unbiased) in 95 % of them.
TEST(MacroAuc, IntervalCoversTheTruthAsOftenAsItSays) {
  constexpr int kRounds = 600, kPerClass = 30;
  std::vector<Interval> areas;
  double truth = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomStream random(11, "coverage", static_cast<std::uint64_t>(round));
    std::vector<double> scores;
    std::vector<std::int64_t> labels;
    for (int i = 0; i < 3 * kPerClass; ++i) {
      labels.push_back(i % 3);
      const double shared = random.normal();  // correlates the columns
      for (int c = 0; c < 3; ++c) scores.push_back((c == i % 3 ? 1.0 : 0.0) + random.normal() + shared);
    }
    areas.push_back(macro_auc(scores, labels, 3));
    truth += areas.back().mean / kRounds;
  }
  const auto covered =
      std::count_if(areas.begin(), areas.end(), [&](const Interval& area) { return area.low <= truth && truth <= area.high; });
  EXPECT_NEAR(static_cast<double>(covered) / kRounds, 0.95, 0.025);
}

TEST(MidRanks, ShareTheRanksOfTies) {
  EXPECT_EQ(mid_ranks(std::vector<double>{5, 1, 5, 3, 5}), (std::vector<double>{4, 1, 4, 2, 4}));
}

}  // namespace
}  // namespace holdfast::measure
