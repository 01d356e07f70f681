// Ranks that train one network together: threads of one process stand for them.
#include <barrier>
#include <cmath>
#include <thread>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "train/toy.h"

namespace holdfast::train {
namespace {

// What the ranks of a group share.
struct Meeting {
  explicit Meeting(int size) : barrier(size), parts(static_cast<std::size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<at::Tensor> parts;
};

class ThreadSum final : public RankSum {
 public:
  ThreadSum(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.parts.size()); }
  void add_up(at::Tensor& tensor) override {
    meeting_.parts[static_cast<std::size_t>(rank_)] = tensor.clone();
    meeting_.barrier.arrive_and_wait();
    const at::NoGradGuard no_graph;
    tensor.zero_();
    for (const at::Tensor& part : meeting_.parts) tensor.add_(part);
    meeting_.barrier.arrive_and_wait();
  }

 private:
  Meeting& meeting_;
  const int rank_;
};

std::vector<TrainResult> train_on(int ranks, const Dataset& dataset, const TrainOptions& options) {
  Meeting meeting(ranks);
  std::vector<TrainResult> results(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadSum sum(meeting, rank);
        TrainOptions own = options;
        own.ranks = &sum;
        results[static_cast<std::size_t>(rank)] = train_network(dataset, own);
      });
    }
  }
  return results;
}

void expect_near(const TrainResult& a, const TrainResult& b, double tolerance) {
  ASSERT_EQ(a.history.size(), b.history.size());
  for (std::size_t i = 0; i < a.history.size(); ++i) {
    EXPECT_NEAR(a.history[i].loss, b.history[i].loss, tolerance * std::abs(b.history[i].loss));
    ASSERT_EQ(a.history[i].parts.size(), b.history[i].parts.size());
    for (std::size_t part = 0; part < a.history[i].parts.size(); ++part)
      EXPECT_NEAR(a.history[i].parts[part].second, b.history[i].parts[part].second, tolerance * 10);
  }
  const auto left = a.network.parameters(), right = b.network.parameters();
  for (std::size_t i = 0; i < left.size(); ++i)
    EXPECT_TRUE(at::allclose(left[i].tensor, right[i].tensor, 100 * tolerance, 100 * tolerance)) << left[i].name;
}

// 6 inputs, batch normalisation of vectors and of channels, dropout.
std::shared_ptr<const Network> with_norms() {
  Network network;
  const auto drawn = [](std::vector<std::int64_t> shape) {
    RandomStream random(3, "weights", static_cast<std::uint64_t>(shape[0]));
    at::Tensor weight = at::empty(shape);
    for (std::int64_t i = 0; i < weight.numel(); ++i) weight.view(-1)[i] = 0.3 * random.normal();
    return weight;
  };
  const auto norm = [](std::int64_t n) {
    return op::BatchNorm{.weight = at::ones({n}), .bias = at::zeros({n}), .mean = at::zeros({n}), .variance = at::ones({n})};
  };
  network.add("input", op::Input{});
  network.add("first", op::Linear{drawn({12, 6}), at::zeros({12})});
  network.add("norm", norm(12));
  network.add("act", op::Activation{});
  network.add("drop", op::Dropout{.rate = 0.3});
  network.add("channels", op::Reshape{.shape = {3, 4}});
  network.add("channel_norm", norm(3));
  network.add("flat", op::Flatten{});
  network.add("last", op::Linear{drawn({2, 12}), at::zeros({2})});
  return std::make_shared<const Network>(std::move(network));
}

TEST(Ranks, RowsOfABatchAreEachOneRanks) {
  for (const std::int64_t rows : {1, 2, 3, 16, 17}) {
    for (const int size : {1, 2, 3, 4}) {
      std::int64_t next = 0, fewest = rows, most = 0;
      for (int rank = 0; rank < size; ++rank) {
        const RankRows own = rows_of_rank(rows, rank, size);
        EXPECT_GE(own.count, 1);
        if (!own.counts) {
          fewest = 0;
          continue;
        }
        EXPECT_EQ(own.first, next);
        next += own.count;
        fewest = std::min(fewest, own.count), most = std::max(most, own.count);
      }
      EXPECT_EQ(next, rows);
      EXPECT_LE(most - fewest, 1);
    }
  }
}

// 120 training samples in batches of 16: the last one has 8, of 59 three.
TEST(Ranks, TrainTheNetworkThatOneProcessTrains) {
  const Dataset dataset = two_clouds();
  for (const char* recipe : {"vanilla", "r2et(top_k=2)", "r2et_no_h(top_k=2)", "pgd(steps=2)", "ssr"}) {
    for (const std::int64_t batch : {16, 59}) {
      TrainOptions options = quick(3);
      options.recipe = recipe;
      options.batch_size = batch;
      const TrainResult alone = train_network(dataset, options);
      for (const int ranks : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{} on {} ranks, batches of {}", recipe, ranks, batch));
        const std::vector<TrainResult> together = train_on(ranks, dataset, options);
        expect_near(together[0], alone, 1e-5);
        for (const TrainResult& other : together) EXPECT_TRUE(same_weights(other.network, together[0].network));
      }
    }
  }
}

TEST(Ranks, BatchNormalisationSeesTheWholeBatch) {
  const Dataset dataset = two_clouds();
  TrainOptions options = quick(3);
  options.network = with_norms();
  options.architecture = "with_norms";
  options.optimizer = "sgd";
  options.early_stopping.restore_best = false;
  for (const char* recipe : {"vanilla", "r2et(top_k=2)"}) {
    options.recipe = recipe;
    for (const std::int64_t batch : {16, 59}) {
      options.batch_size = batch;
      const TrainResult alone = train_network(dataset, options);
      for (const int ranks : {2, 4}) {
        SCOPED_TRACE(fmt::format("{} on {} ranks, batches of {}", recipe, ranks, batch));
        expect_near(train_on(ranks, dataset, options)[0], alone, 1e-4);
      }
    }
  }
}

TEST(Ranks, GoOnFromACheckpointAsIfTheyHadNotStopped) {
  const Dataset dataset = two_clouds();
  const TempFolder folder;
  TrainOptions options = quick(4);
  const TrainResult whole = train_on(2, dataset, options)[0];
  options.folder = folder / "run";
  options.epochs = 4;
  {
    TrainOptions first = options;
    first.early_stopping.patience = 0;
    // One epoch by one process: its checkpoint is a training's like any other.
    EXPECT_ERROR(train_network(dataset, first, [](const EpochRecord&) { failure("stopped"); }), kFailure, "stopped");
  }
  const std::vector<TrainResult> rest = train_on(2, dataset, options);
  expect_near(rest[0], whole, 1e-5);
  EXPECT_EQ(rest[1].history.size(), 4u);
}

TEST(Ranks, DoNotShareABatchWhoseSamplesAreCompared) {
  TrainOptions options = quick(1);
  options.recipe = "pair_hinge(top_k=2)";
  Meeting meeting(1);
  ThreadSum sum(meeting, 0);
  options.ranks = &sum;
  EXPECT_ERROR(train_network(two_clouds(), options), kUsage, "compares the samples of a batch");
}

}  // namespace
}  // namespace holdfast::train
