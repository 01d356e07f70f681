#include "holdfast/core/tiles.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "holdfast/core/interrupt.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "support/errors.h"

namespace holdfast {
namespace {

TEST(Tile, TilesCoverTheSamplesOnceAndInOrder) {
  for (const std::int64_t samples : {0, 1, 6, 7, 8, 100}) {
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < tile_count(samples, 7); ++i) {
      const Tile tile = tile_at(samples, 7, i);
      EXPECT_EQ(tile.index, i);
      EXPECT_EQ(tile.begin, next);
      EXPECT_TRUE(tile.size() == 7 || tile.end == samples);
      EXPECT_GT(tile.size(), 0);
      next = tile.end;
    }
    EXPECT_EQ(next, samples);
  }
  EXPECT_ERROR(tile_at(10, 5, 2), kBug, "index");
}

// A gradient of a small network at random inputs, tile by tile: arithmetic whose last bits would show a difference.
at::Tensor computed_with(int threads, const std::function<bool(const Tile&)>& skip = {}, at::Tensor result = {}) {
  constexpr std::int64_t kSamples = 103, kFeatures = 300;
  const at::Tensor weights = random_normal({kFeatures}, at::arange(kFeatures), 1, "weights") / 10;
  if (!result.defined()) result = at::full({kSamples, kFeatures}, -1.0);
  for_each_tile(
      kSamples, 10, threads,
      [&](const Tile& tile) {
        at::Tensor inputs = random_normal({kFeatures}, at::arange(tile.begin, tile.end), 2, "inputs").requires_grad_();
        const at::Tensor loss = inputs.matmul(weights).tanh().matmul(weights).log_softmax(1).sum();
        result.slice(0, tile.begin, tile.end).copy_(torch::autograd::grad({loss}, {inputs})[0]);
      },
      skip);
  return result;
}

TEST(ForEachTile, SameBytesForAnyNumberOfThreads) {
  const at::Tensor one = computed_with(1);
  EXPECT_TRUE(all_finite(one));
  EXPECT_EQ(one.eq(-1.0).sum().item<std::int64_t>(), 0);
  for (const int threads : {0, 2, 3, 64}) EXPECT_TRUE(at::equal(one, computed_with(threads))) << threads;
}

TEST(ForEachTile, AResumedRunEndsWithTheSameBytes) {
  const at::Tensor whole = computed_with(2);
  std::set<std::int64_t> done;
  // The first run is stopped after four tiles, the second leaves out what the first had finished.
  const at::Tensor kept = at::full_like(whole, -1.0);
  std::mutex mutex;
  try {
    for_each_tile(103, 10, 2, [&](const Tile& tile) {
      const std::lock_guard lock(mutex);
      if (done.size() == 4) throw std::runtime_error("power cut");
      kept.slice(0, tile.begin, tile.end).copy_(whole.slice(0, tile.begin, tile.end));
      done.insert(tile.index);
    });
    FAIL() << "the run was to be stopped";
  } catch (const std::runtime_error&) {
  }
  ASSERT_EQ(done.size(), 4U);
  std::int64_t asked = 0;
  const at::Tensor resumed = computed_with(
      2, [&](const Tile& tile) { return ++asked, done.contains(tile.index); }, kept);
  EXPECT_EQ(asked, 11);
  EXPECT_TRUE(at::equal(resumed, whole));
}

TEST(ForEachTile, TilesStartInOrderAndEachOnce) {
  for (const int threads : {1, 2}) {
    std::mutex mutex;
    std::vector<std::int64_t> order;
    for_each_tile(100, 3, threads, [&](const Tile& tile) {
      const std::lock_guard lock(mutex);
      order.push_back(tile.index);
    });
    EXPECT_EQ(order.size(), 34U);
    EXPECT_TRUE(threads > 1 || std::is_sorted(order.begin(), order.end()));
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 34U);
  }
  for_each_tile(0, 3, 2, [](const Tile&) { FAIL() << "there is no tile"; });
}

TEST(ForEachTile, TheErrorOfTheFirstFailingTileIsThrownAndNewTilesStop) {
  for (const int threads : {1, 2, 4}) {
    std::atomic<std::int64_t> started{0};
    const auto run = [&] {
      for_each_tile(1000, 1, threads, [&](const Tile& tile) {
        ++started;
        if (tile.index == 5) std::this_thread::sleep_for(std::chrono::milliseconds(30));
        if (tile.index >= 5) input_error("tile {} is bad", tile.index);
      });
    };
    // Tile 5 fails last of those that run, yet it is the one a single thread would have met.
    EXPECT_ERROR(run(), kInput, "tile 5 is bad");
    EXPECT_LE(started, 5 + threads);
  }
}

TEST(ForEachTile, ALaterTileThatFailsLaterDoesNotHideTheFirstError) {
  std::atomic<bool> second_runs{false};
  const auto run = [&] {
    for_each_tile(2, 1, 2, [&](const Tile& tile) {
      if (tile.index == 1) {
        second_runs = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      while (!second_runs) std::this_thread::yield();
      input_error("tile {} is bad", tile.index);
    });
  };
  EXPECT_ERROR(run(), kInput, "tile 0 is bad");
}

TEST(ForEachTile, ErrorsOfSkipAreThrownToo) {
  const auto run = [](int threads) {
    for_each_tile(
        10, 1, threads, [](const Tile&) {}, [](const Tile&) -> bool { input_error("cannot look"); });
  };
  EXPECT_ERROR(run(1), kInput, "cannot look");
  EXPECT_ERROR(run(2), kInput, "cannot look");
}

TEST(ForEachTile, AnInterruptStopsNewTilesAndKeepsFinishedOnes) {
  for (const int threads : {1, 2}) {
    std::atomic<std::int64_t> finished{0};
    const auto run = [&] {
      for_each_tile(1000, 1, threads, [&](const Tile& tile) {
        if (tile.index == 10) request_interrupt();
        ++finished;
      });
    };
    EXPECT_ERROR(run(), kInterrupted, "interrupted");
    EXPECT_GE(finished, 10);
    EXPECT_LE(finished, 10 + threads);
    clear_interrupt();
  }
}

TEST(ForEachTile, AnInterruptInTheLastTileLosesNothing) {
  const auto run = [] {
    for_each_tile(3, 1, 1, [](const Tile& tile) {
      if (tile.index == 2) request_interrupt();
    });
  };
  EXPECT_NO_THROW(run());
  clear_interrupt();
}

TEST(ForEachTile, WorkersComputeUnderTheCallersModesAndWithOneThread) {
  for (const int threads : {1, 2}) {
    std::atomic<int> wrong{0};
    const at::NoGradGuard no_grad;
    for_each_tile(8, 1, threads, [&](const Tile&) {
      wrong += at::GradMode::is_enabled();
      wrong += at::get_num_threads() != 1;
      wrong += torch::jit::getGraphExecutorOptimize();
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ForEachTile, ThreadsWorkSideBySide) {
  // Two tiles that wait for each other end only when both run at once.
  std::atomic<int> arrived{0};
  for_each_tile(2, 1, 2, [&](const Tile&) {
    ++arrived;
    const auto start = std::chrono::steady_clock::now();
    while (arrived < 2 && std::chrono::steady_clock::now() - start < std::chrono::seconds(10)) std::this_thread::yield();
    EXPECT_EQ(arrived, 2);
  });
}

TEST(TileThread, RestoresWhatWas) {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  torch::jit::setGraphExecutorOptimize(true);
  {
    const TileThread tile_thread;
    EXPECT_EQ(at::get_num_threads(), 1);
    EXPECT_FALSE(torch::jit::getGraphExecutorOptimize());
  }
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_TRUE(torch::jit::getGraphExecutorOptimize());
  for_each_tile(10, 1, 2, [](const Tile&) {});
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_TRUE(torch::jit::getGraphExecutorOptimize());
  at::set_num_threads(before);
}

}  // namespace
}  // namespace holdfast
