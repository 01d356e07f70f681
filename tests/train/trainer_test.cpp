#include "holdfast/train/trainer.h"

#include <cmath>

#include "holdfast/core/files.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/json.h"
#include "holdfast/model/model.h"
#include "support/errors.h"
#include "support/temp_folder.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

// Stops the training as Ctrl-C would after some epochs, and lets the next test start clean.
class InterruptAfter {
 public:
  explicit InterruptAfter(std::int64_t epochs) : epochs_(epochs) {}
  ~InterruptAfter() { clear_interrupt(); }
  void operator()(const EpochRecord& record) const {
    if (record.epoch == epochs_) request_interrupt();
  }

 private:
  std::int64_t epochs_;
};

TEST(TrainNetwork, LearnsWhatCanBeLearned) {
  // The clouds' means lie 2 sqrt(2) apart: the best rule is right with probability Phi(sqrt 2) = 0.921.
  const TrainResult result = train_network(two_clouds(2000), quick());
  EXPECT_NEAR(result.test->accuracy.mean, 0.921, 0.03);
  EXPECT_LT(result.test->accuracy.low, 0.921);
  EXPECT_GT(result.test->accuracy.high, 0.921);
  EXPECT_LT(result.history.back().loss, result.history.front().loss - 0.05);
  EXPECT_EQ(result.history.size(), 6u);
  EXPECT_EQ(result.history.back().parts, (std::vector<std::pair<std::string, double>>{{"ce", result.history.back().loss}}));
}

TEST(TrainNetwork, FirstEpochsLossIsThatOfItsSteps) {
  // With a vanishing rate nothing moves: the epoch's loss is the initial network's over the training samples.
  TrainOptions options = quick(1);
  options.optimizer = "sgd";
  options.learning_rate = 1e-30;
  const Dataset dataset = two_clouds();
  const TrainResult result = train_network(dataset, options);
  const Network fresh = architectures().make(result.architecture)->build(0);
  EXPECT_TRUE(same_weights(result.network, fresh));
  EXPECT_NEAR(result.history[0].loss,
              cross_entropy(predict(fresh, dataset.inputs_of(dataset.train)), dataset.labels_of(dataset.train)), 1e-6);
}

TEST(TrainNetwork, SameSeedSameBytesWhateverTheThreads) {
  const Dataset dataset = two_clouds(3000);  // several tiles of validation samples
  TrainOptions options = quick(2);
  options.early_stopping.metric = "auc";
  const TrainResult one = train_network(dataset, options);
  at::set_num_threads(2);
  options.threads = 2;
  const TrainResult two = train_network(dataset, options);
  EXPECT_TRUE(same_weights(one.network, two.network));
  EXPECT_EQ(to_json(*one.test), to_json(*two.test));
  EXPECT_EQ(at::get_num_threads(), 2);  // restored
  options.seed = 1;
  EXPECT_FALSE(same_weights(one.network, train_network(dataset, options).network));
}

TEST(TrainNetwork, ResumesToTheSameBytes) {
  const Dataset dataset = two_clouds();
  for (const char* optimizer : {"adam", "sgd"}) {
    TrainOptions options = quick(5);
    options.optimizer = optimizer;
    options.schedule = "cosine(warmup=0.3)";
    const TrainResult whole = train_network(dataset, options);

    const TempFolder folder;
    options.folder = folder.path();
    {
      const InterruptAfter interrupt(2);
      EXPECT_ERROR(train_network(dataset, options, interrupt), kInterrupted,
                   "interrupted in epoch 3 of 5; the epochs before it are kept in");
    }
    EXPECT_TRUE(file_exists(folder / "checkpoint.safetensors"));
    int trained = 0;
    const TrainResult resumed = train_network(dataset, options, [&](const EpochRecord&) { ++trained; });
    EXPECT_EQ(trained, 3);
    EXPECT_TRUE(same_weights(whole.network, resumed.network));
    ASSERT_EQ(resumed.history.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(whole.history[i].loss, resumed.history[i].loss);
      EXPECT_EQ(whole.history[i].auc, resumed.history[i].auc);
      EXPECT_EQ(whole.history[i].learning_rate, resumed.history[i].learning_rate);
    }
    // A finished training is not trained again.
    const TrainResult again = train_network(dataset, options, [](const EpochRecord&) { FAIL(); });
    EXPECT_TRUE(same_weights(whole.network, again.network));
  }
}

// 120 training samples in batches of 16: 8 steps an epoch.
TEST(TrainNetwork, ASnapshotIsTheNetworkAfterSoManySteps) {
  const Dataset dataset = two_clouds();
  TrainOptions options = quick(3);
  options.early_stopping.restore_best = false;
  options.snapshots = {3, 8, 24};
  const TrainResult whole = train_network(dataset, options);
  ASSERT_EQ(whole.snapshots.size(), 3u);
  EXPECT_EQ(whole.snapshots[0].step, 3);
  EXPECT_TRUE(same_weights(whole.snapshots[2].network, whole.network));
  EXPECT_EQ(to_json(*whole.snapshots[2].test), to_json(*whole.test));
  EXPECT_FALSE(same_weights(whole.snapshots[0].network, whole.snapshots[1].network));
  TrainOptions shorter = options;
  shorter.epochs = 1;
  shorter.snapshots.clear();
  const TrainResult epoch = train_network(dataset, shorter);
  EXPECT_TRUE(same_weights(whole.snapshots[1].network, epoch.network));
  EXPECT_EQ(to_json(*whole.snapshots[1].validation), to_json(*epoch.validation));

  // Those from before an interruption are there too.
  const TempFolder folder;
  options.folder = folder.path();
  {
    const InterruptAfter interrupt(2);
    EXPECT_ERROR(train_network(dataset, options, interrupt), kInterrupted, "epoch 3");
  }
  const TrainResult resumed = train_network(dataset, options);
  ASSERT_EQ(resumed.snapshots.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_weights(resumed.snapshots[i].network, whole.snapshots[i].network)) << i;
}

TEST(TrainNetwork, RefusesSnapshotsThatItCannotTake) {
  TrainOptions options = quick(1);
  options.snapshots = {9};
  EXPECT_ERROR(train_network(two_clouds(), options), kUsage, "there is no step 9; 1 epochs have 8 steps");
  options.snapshots = {4, 4};
  EXPECT_ERROR(train_network(two_clouds(), options), kUsage, "step 4 comes after step 4");
  options = quick(1);
  options.recipe = "linear";
  options.architecture = "linear";
  options.snapshots = {1};
  EXPECT_ERROR(train_network(two_clouds(), options), kUsage, "makes no steps");
}

TEST(TrainNetwork, ResumesBatchNormalisationsStatistics) {
  const Dataset dataset = two_clouds(30, {3, 8, 8});
  TrainOptions options = quick(3);
  options.architecture = "cifar_resnet20(inputs=3x8x8)";
  options.batch_size = 6;
  options.early_stopping.restore_best = false;
  const TrainResult whole = train_network(dataset, options);
  const TempFolder folder;
  options.folder = folder.path();
  {
    const InterruptAfter interrupt(1);
    EXPECT_ERROR(train_network(dataset, options, interrupt), kInterrupted, "interrupted in epoch 2");
  }
  EXPECT_TRUE(same_weights(whole.network, train_network(dataset, options).network));
}

TEST(TrainNetwork, HistoryHasALineForEveryEpochAfterAnInterruption) {
  const TempFolder folder;
  TrainOptions options = quick(4);
  options.folder = folder.path();
  {
    const InterruptAfter interrupt(2);
    EXPECT_ERROR(train_network(two_clouds(), options, interrupt), kInterrupted, "epoch 3");
  }
  // What a crash between the two files leaves behind: a line too many.
  write_atomic(folder / "history.jsonl", read_text(folder / "history.jsonl") + "{\"epoch\": 3}\n");
  const TrainResult result = train_network(two_clouds(), options);
  std::istringstream lines(read_text(folder / "history.jsonl"));
  std::int64_t epoch = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json(line, "history");
    EXPECT_EQ(json["epoch"], ++epoch);
    EXPECT_EQ(json["loss"].get<double>(), result.history[static_cast<std::size_t>(epoch - 1)].loss);
    EXPECT_TRUE(json["validation"]["auc"].is_number());
    EXPECT_TRUE(json["seconds"].is_number());
  }
  EXPECT_EQ(epoch, 4);
}

TEST(TrainNetwork, EarlyStoppingKeepsTheBestEpoch) {
  // A rate so high that the validation loss soon rises again.
  const Dataset dataset = two_clouds(60);
  for (const char* metric : {"loss", "auc", "accuracy"}) {
    TrainOptions options = quick(60);
    options.learning_rate = 0.1;
    options.early_stopping = {.metric = metric, .patience = 4};
    const TrainResult result = train_network(dataset, options);
    const auto value = [&](const EpochRecord& record) {
      return std::string(metric) == "loss" ? -*record.validation_loss
                                           : (std::string(metric) == "auc" ? *record.auc : *record.accuracy);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < result.history.size(); ++i) {
      if (value(result.history[i]) > value(result.history[best])) best = i;
    }
    EXPECT_EQ(result.kept_epoch, static_cast<std::int64_t>(best) + 1) << metric;
    EXPECT_EQ(result.history.size(), best + 1 + 4) << metric;
    EXPECT_LT(result.history.size(), 60u) << metric;
    EXPECT_EQ(result.validation->loss, *result.history[best].validation_loss) << metric;

    // The same weights as a training that ends there.
    TrainOptions shorter = options;
    shorter.epochs = result.kept_epoch;
    shorter.early_stopping = {.restore_best = false};
    EXPECT_TRUE(same_weights(result.network, train_network(dataset, shorter).network)) << metric;
    options.early_stopping.restore_best = false;
    EXPECT_EQ(train_network(dataset, options).kept_epoch, static_cast<std::int64_t>(result.history.size())) << metric;
  }
}

TEST(TrainNetwork, EarlyStoppingCountsAcrossAnInterruption) {
  const Dataset dataset = two_clouds(60);
  TrainOptions options = quick(60);
  options.learning_rate = 0.1;
  options.early_stopping = {.metric = "loss", .patience = 4};
  const TrainResult whole = train_network(dataset, options);
  const TempFolder folder;
  options.folder = folder.path();
  {
    const InterruptAfter interrupt(whole.kept_epoch + 2);
    EXPECT_ERROR(train_network(dataset, options, interrupt), kInterrupted, "interrupted");
  }
  const TrainResult resumed = train_network(dataset, options);
  EXPECT_EQ(resumed.kept_epoch, whole.kept_epoch);
  EXPECT_EQ(resumed.history.size(), whole.history.size());
  EXPECT_TRUE(same_weights(whole.network, resumed.network));
}

TEST(TrainNetwork, FollowsTheSchedule) {
  TrainOptions options = quick(4);
  options.schedule = "step(at=1x3,factor=0.5)";
  const TrainResult result = train_network(two_clouds(), options);
  std::vector<double> rates;
  for (const EpochRecord& record : result.history) rates.push_back(record.learning_rate);
  EXPECT_EQ(rates, (std::vector<double>{0.02, 0.01, 0.01, 0.005}));
}

TEST(TrainNetwork, WeightDecayShrinksTheWeights) {
  TrainOptions options = quick(10);
  const auto norm = [&](double decay) {
    options.weight_decay = decay;
    double sum = 0;
    for (const Parameter& parameter : train_network(two_clouds(), options).network.parameters())
      sum += parameter.tensor.pow(2).sum().item<double>();
    return sum;
  };
  EXPECT_LT(norm(0.1), 0.5 * norm(0));
}

TEST(TrainNetwork, SaysWhereTheLossIsLost) {
  TrainOptions options = quick(3);
  options.optimizer = "sgd";
  options.learning_rate = 1e25;
  EXPECT_ERROR(train_network(two_clouds(), options), kFailure, "in epoch 1, step ");
  EXPECT_ERROR(train_network(two_clouds(), options), kFailure, "try a learning_rate below 1e+25");
}

TEST(TrainNetwork, RefusesTheCheckpointOfAnotherTraining) {
  const TempFolder folder;
  TrainOptions options = quick(1);
  options.folder = folder.path();
  (void)train_network(two_clouds(), options);
  options.learning_rate = 0.5;
  EXPECT_ERROR(train_network(two_clouds(), options), kUsage, "is of another training (learning_rate was 0.02, is 0.5)");
  options.learning_rate = 0.02;
  EXPECT_ERROR(train_network(two_clouds(100), options), kUsage, "training samples");
  Bytes changed = read_bytes(folder / "checkpoint.safetensors");
  changed[changed.size() - 3] ^= std::byte{4};  // a weight
  write_atomic(folder / "checkpoint.safetensors", changed);
  EXPECT_ERROR(train_network(two_clouds(), options), kInput, "checkpoint.safetensors is not as the training wrote it");
  save_network(folder / "checkpoint.safetensors", architectures().make("mlp")->build(0), "mlp");
  EXPECT_ERROR(train_network(two_clouds(), options), kInput, "checkpoint.safetensors: it is no training checkpoint");
  write_atomic(folder / "checkpoint.safetensors", std::string_view("not a checkpoint"));
  EXPECT_ERROR(train_network(two_clouds(), options), kInput, "checkpoint.safetensors");
}

TEST(TrainNetwork, WorksWithoutValidationAndTestSamples) {
  Dataset dataset = two_clouds();
  dataset.validation.clear();
  dataset.test.clear();
  const TrainResult result = train_network(dataset, quick(2));
  EXPECT_FALSE(result.test || result.validation || result.history[0].accuracy);
  EXPECT_EQ(result.kept_epoch, 2);
}

TEST(TrainNetwork, RefusesToWatchAnUndefinedMetric) {
  Dataset dataset = two_clouds();
  std::erase_if(dataset.validation, [&](std::int64_t row) { return dataset.labels[row].item<std::int64_t>() == 0; });
  TrainOptions options = quick(1);
  EXPECT_FALSE(train_network(dataset, options).history[0].auc);
  options.early_stopping.metric = "auc";
  EXPECT_ERROR(train_network(dataset, options), kUsage, "all of one class");
}

}  // namespace
}  // namespace holdfast::train
