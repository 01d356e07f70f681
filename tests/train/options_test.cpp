#include <algorithm>

#include "support/errors.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

TEST(TrainOptions, TakeTheirDefaultsFromRecipeAndDataset) {
  TrainOptions options = quick();
  options.recipe = "sp";
  const TrainOptions full = resolved(two_clouds(), options);
  EXPECT_EQ(full.architecture, "mlp(inputs=6,hidden=8,activation=softplus,beta=0.5)");
  EXPECT_EQ(full.activation, "softplus(beta=0.5)");
  EXPECT_EQ(full.objective, "ce");
  EXPECT_EQ(full.weight_decay, 0);
  EXPECT_EQ(resolved(two_clouds(),
                     [&] {
                       auto wd = quick();
                       wd.recipe = "wd";
                       return wd;
                     }())
                .weight_decay,
            5e-4);
}

TEST(TrainOptions, WhatIsSetWinsOverTheRecipe) {
  TrainOptions options = quick();
  options.recipe = "sp";
  options.activation = "tanh";
  options.weight_decay = 0.5;
  EXPECT_EQ(resolved(two_clouds(), options).activation, "tanh");
  EXPECT_EQ(resolved(two_clouds(), options).weight_decay, 0.5);
  options.architecture = "mlp(hidden=8,activation=relu)";  // the architecture's own word is the last
  EXPECT_EQ(resolved(two_clouds(), options).activation, "relu");
}

TEST(TrainOptions, ResolvingTwiceChangesNothing) {
  TrainOptions options = quick();
  options.recipe = "sp";
  for (const char* architecture : {"mlp", "mlp(activation=relu)", "mlp(activation=elu,alpha=0.5)", "mlp(hidden=4x4)"}) {
    options.architecture = architecture;
    const TrainOptions once = resolved(two_clouds(), options);
    EXPECT_EQ(to_json(resolved(two_clouds(), once)), to_json(once)) << architecture;
  }
}

TEST(TrainOptions, VanillaKeepsTheArchitecturesOwnActivation) {
  TrainOptions options = quick();
  options.architecture = "gtsrb_resnet";
  EXPECT_EQ(resolved(two_clouds(10, {3, 32, 32}), options).activation, "leaky_relu(slope=0.1)");
}

TEST(TrainOptions, RefuseWhatDoesNotFit) {
  const Dataset dataset = two_clouds();
  const auto with = [](auto change) {
    TrainOptions options = quick();
    change(options);
    return options;
  };
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.architecture = "mlp(inputs=7)"; })), kUsage, "mlp(inputs=7)");
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.architecture = "linear", o.recipe = "sp"; })), kUsage,
               "linear has no activation");
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.recipe = "spp"; })), kUsage, "did you mean 'sp'?");
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.optimizer = "adma"; })), kUsage, "did you mean 'adam'?");
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.epochs = 0; })), kUsage, "epochs is 0");
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.batch_size = 0; })), kUsage, "batch_size is 0");
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.learning_rate = -1; })), kUsage, "learning_rate is -1");
  EXPECT_ERROR(resolved(dataset, with([](auto& o) { o.early_stopping.metric = "acuracy"; })), kUsage, "did you mean 'accuracy'?");
  Dataset unvalidated = two_clouds();
  unvalidated.validation.clear();
  EXPECT_ERROR(resolved(unvalidated, with([](auto& o) { o.early_stopping.patience = 3; })), kUsage, "needs validation samples");
}

TEST(EpochBatches, HoldEveryRowOnceInAnOrderOfTheEpoch) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < 23; ++i) rows.push_back(10 + 2 * i);
  const auto first = epoch_batches(rows, 5, 1, 0);
  ASSERT_EQ(first.size(), 5u);
  EXPECT_EQ(first.back().size(), 3u);
  std::vector<std::int64_t> seen;
  for (const auto& batch : first) seen.insert(seen.end(), batch.begin(), batch.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, rows);
  EXPECT_EQ(epoch_batches(rows, 5, 1, 0), first);
  EXPECT_NE(epoch_batches(rows, 5, 1, 1), first);
  EXPECT_NE(epoch_batches(rows, 5, 2, 0), first);
}

TEST(EpochBatches, LeaveNoSampleAlone) {
  const auto batches = epoch_batches({1, 2, 3, 4, 5, 6, 7}, 3, 0, 0);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1].size(), 4u);
  EXPECT_EQ(epoch_batches({1, 2, 3}, 1, 0, 0).size(), 3u);  // asked for
}

}  // namespace
}  // namespace holdfast::train
