#include <set>

#include "holdfast/train/train_many.h"

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/model/model.h"
#include "support/errors.h"
#include "support/temp_folder.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

std::vector<TrainOptions> of_seeds(const TrainOptions& options, std::uint64_t seeds) {
  std::vector<TrainOptions> all(seeds, options);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) all[seed].seed = seed;
  return all;
}

void expect_close(const Network& a, const Network& b, double tolerance) {
  const auto left = a.parameters(), right = b.parameters();
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].name, right[i].name);
    EXPECT_TRUE(at::allclose(left[i].tensor, right[i].tensor, tolerance, tolerance)) << left[i].name;
  }
}

// Alone and in a stack: the same samples in the same order, so the same weights but for rounding.
TEST(TrainMany, ANetworkInAStackEndsAsItWouldAlone) {
  const Dataset dataset = two_clouds();
  for (const char* optimizer : {"adam", "sgd(momentum=0.9)"}) {
    TrainOptions options = quick(4);
    options.optimizer = optimizer;
    options.weight_decay = 0.01;
    options.schedule = "cosine(warmup=1)";
    const std::vector<TrainOptions> all = of_seeds(options, 5);
    const std::vector<TrainResult> together = train_many(dataset, all, 1);
    ASSERT_EQ(together.size(), 5u);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const TrainResult alone = train_network(dataset, all[i]);
      expect_close(together[i].network, alone.network, 1e-4);
      EXPECT_EQ(together[i].kept_epoch, alone.kept_epoch);
      ASSERT_EQ(together[i].history.size(), alone.history.size());
      EXPECT_NEAR(together[i].history.back().loss, alone.history.back().loss, 1e-5);
      EXPECT_NEAR(*together[i].history.back().validation_loss, *alone.history.back().validation_loss, 1e-5);
      EXPECT_EQ(together[i].architecture, alone.architecture);
      EXPECT_EQ(together[i].test->accuracy.mean, alone.test->accuracy.mean);
    }
  }
}

TEST(TrainMany, SnapshotsOfAStackAreThoseOfItsNetworks) {
  const Dataset dataset = two_clouds();
  TrainOptions options = quick(2);
  options.snapshots = {5, 11};
  const std::vector<TrainOptions> all = of_seeds(options, 3);
  const std::vector<TrainResult> together = train_many(dataset, all, 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TrainResult alone = train_network(dataset, all[i]);
    ASSERT_EQ(together[i].snapshots.size(), 2u);
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(together[i].snapshots[j].step, options.snapshots[j]);
      expect_close(together[i].snapshots[j].network, alone.snapshots[j].network, 1e-5);
      EXPECT_EQ(together[i].snapshots[j].test->accuracy.mean, alone.snapshots[j].test->accuracy.mean);
    }
  }
}

// A grid: every network of the stack has its own weights.
TEST(TrainMany, WeightsOfTheTermsAreEachNetworksOwn) {
  const Dataset dataset = two_clouds();
  std::vector<TrainOptions> all;
  for (const char* gap : {"0", "0.5", "4"}) {
    all.push_back(quick(3));
    all.back().objective = std::string("r2et(top_k=2,curvature=0,gap=") + gap + ")";
  }
  const std::vector<TrainResult> together = train_many(dataset, all, 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TrainResult alone = train_network(dataset, all[i]);
    expect_close(together[i].network, alone.network, 1e-4);
    EXPECT_NEAR(together[i].history.back().loss, alone.history.back().loss, 1e-4);
  }
  EXPECT_FALSE(at::allclose(together[0].network.parameters()[0].tensor, together[2].network.parameters()[0].tensor, 1e-2, 1e-2));
}

// A mixture: two shapes that stack, one that does not, in one call and in their order.
TEST(TrainMany, WhatDoesNotStackTrainsAlone) {
  const Dataset dataset = two_clouds();
  std::vector<TrainOptions> all = of_seeds(quick(2), 2);
  all.push_back(quick(2));
  all.back().architecture = "mlp(hidden=5x4)";
  all.push_back(quick(2));
  all.back().learning_rate = 0.001;
  const std::vector<TrainResult> together = train_many(dataset, all, 1);
  for (std::size_t i = 0; i < all.size(); ++i) expect_close(together[i].network, train_network(dataset, all[i]).network, 1e-4);
}

TEST(TrainMany, ThreadsChangeNoByte) {
  const Dataset dataset = two_clouds();
  const std::vector<TrainOptions> all = of_seeds(quick(2), 11);  // more than one stack holds
  const std::vector<TrainResult> one = train_many(dataset, all, 1), two = train_many(dataset, all, 2);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_weights(one[i].network, two[i].network)) << i;
}

// One network stops early while the others train on: it keeps what it would have alone.
TEST(TrainMany, EveryNetworkStopsOnItsOwn) {
  const Dataset dataset = two_clouds();
  for (const bool restore : {true, false}) {
    TrainOptions options = quick(30);
    options.early_stopping = {.metric = "accuracy", .patience = 2, .restore_best = restore};
    const std::vector<TrainOptions> all = of_seeds(options, 4);
    const std::vector<TrainResult> together = train_many(dataset, all, 1);
    std::set<std::size_t> lengths;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const TrainResult alone = train_network(dataset, all[i]);
      EXPECT_EQ(together[i].history.size(), alone.history.size()) << i;
      expect_close(together[i].network, alone.network, 1e-3);
      lengths.insert(alone.history.size());
    }
    EXPECT_GT(lengths.size(), 1u);  // else nothing was tested
  }
}

class Retraining : public ::testing::Test {
 protected:
  void SetUp() override {
    const TrainResult start = train_network(dataset_, quick(8));
    start_ = start.network;
    save_network(file_, start.network, start.architecture);
    options_ = quick(6);
    options_.seed = 9;
    options_.retrain = {.from = file_, .top_k = 3, .ranking_drop = 1, .auc_drop = 1};
  }
  TempFolder folder_;
  const std::string file_ = folder_.path() + "/start.safetensors";
  const Dataset dataset_ = two_clouds();
  Network start_;
  TrainOptions options_;
};

TEST_F(Retraining, WithoutLimitsTheLastEpochIsKept) {
  const TrainResult result = train_network(dataset_, options_);
  EXPECT_EQ(result.kept_epoch, 6);
  EXPECT_FALSE(same_weights(result.network, start_));
  for (const EpochRecord& record : result.history) {
    ASSERT_TRUE(record.ranking_kept);
    EXPECT_GT(*record.ranking_kept, 0.3);  // chance is a half
    EXPECT_LE(*record.ranking_kept, 1);
  }
}

TEST_F(Retraining, ABrokenLimitEndsItAndTheEpochBeforeIsKept) {
  options_.learning_rate = 0.2;
  const std::vector<EpochRecord> free = train_network(dataset_, options_).history;
  // A limit that the second epoch breaks, or the first that does.
  options_.retrain.ranking_drop = 0;
  const TrainResult none = train_network(dataset_, options_);
  EXPECT_EQ(none.kept_epoch, 0);
  EXPECT_EQ(none.history.size(), 1u);
  EXPECT_TRUE(same_weights(none.network, start_));

  double least = 1;
  for (std::size_t i = 0; i < 3; ++i) least = std::min(least, *free[i].ranking_kept);
  std::size_t breaking = free.size();
  for (std::size_t i = free.size(); i-- > 0;) {
    if (*free[i].ranking_kept < least) breaking = i;
  }
  options_.retrain.ranking_drop = 1 - least + 1e-9;
  const TrainResult some = train_network(dataset_, options_);
  EXPECT_EQ(some.kept_epoch, static_cast<std::int64_t>(breaking));
}

TEST_F(Retraining, IsTheSameInAStack) {
  options_.retrain.ranking_drop = 0.4;
  std::vector<TrainOptions> all(2, options_);
  all[1].seed = 10;
  const std::vector<TrainResult> together = train_many(dataset_, all, 1);
  for (std::size_t i = 0; i < all.size(); ++i) expect_close(together[i].network, train_network(dataset_, all[i]).network, 1e-4);
}

TEST_F(Retraining, RefusesWhatDoesNotFit) {
  options_.retrain.top_k = 7;
  EXPECT_ERROR(train_network(dataset_, options_), kUsage, "retrain.top_k is 7");
  options_.retrain.top_k = 3;
  options_.architecture = "mlp(hidden=9)";
  EXPECT_ERROR(train_network(dataset_, options_), kInput, "shape");
  options_.retrain.from = folder_.path() + "/missing.safetensors";
  EXPECT_ERROR(train_network(dataset_, options_), kInput, "missing.safetensors");
}

}  // namespace
}  // namespace holdfast::train
