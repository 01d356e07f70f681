#include "holdfast/core/tiles.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"

namespace holdfast {
namespace {

// Hands out tiles in order and keeps what went wrong. Of several failures the one of the first tile counts: it is the
// one that a single thread would have met.
class Queue {
 public:
  Queue(std::int64_t samples, std::int64_t tile_size, const std::function<bool(const Tile&)>& skip,
        const std::function<std::int64_t()>& take)
      : samples_(samples), tile_size_(tile_size), count_(tile_count(samples, tile_size)), skip_(skip), take_(take) {}

  std::optional<Tile> next() {
    const std::lock_guard lock(mutex_);
    while (!error_ && next_ < count_ && !interrupted()) {
      try {
        const std::int64_t index = take_ ? take_() : next_;
        next_ = index + 1;
        if (index >= count_) break;
        const Tile tile = tile_at(samples_, tile_size_, index);
        if (!skip_ || !skip_(tile)) return tile;
      } catch (...) {
        keep(next_ - 1, std::current_exception());
      }
    }
    return std::nullopt;
  }

  void failed(const Tile& tile, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    keep(tile.index, std::move(error));
  }

  // Call this when all threads have ended.
  void throw_what_went_wrong() const {
    if (error_) std::rethrow_exception(error_);
    if (next_ < count_) throw_if_interrupted();
  }

 private:
  void keep(std::int64_t index, std::exception_ptr error) {
    if (error_ && error_index_ < index) return;
    error_ = std::move(error);
    error_index_ = index;
  }

  const std::int64_t samples_, tile_size_, count_;
  const std::function<bool(const Tile&)>& skip_;
  const std::function<std::int64_t()>& take_;
  std::mutex mutex_;
  std::int64_t next_ = 0;  // one past the last tile that was handed out
  std::exception_ptr error_;
  std::int64_t error_index_ = 0;
};

void work_through(Queue& queue, const std::function<void(const Tile&)>& work) {
  while (const std::optional<Tile> tile = queue.next()) {
    try {
      work(*tile);
    } catch (...) {
      queue.failed(*tile, std::current_exception());
    }
  }
}

}  // namespace

std::int64_t tile_count(std::int64_t samples, std::int64_t tile_size) {
  HOLDFAST_CHECK(samples >= 0 && tile_size > 0);
  return samples / tile_size + (samples % tile_size == 0 ? 0 : 1);
}

Tile tile_at(std::int64_t samples, std::int64_t tile_size, std::int64_t index) {
  HOLDFAST_CHECK(index >= 0 && index < tile_count(samples, tile_size));
  const std::int64_t begin = index * tile_size;
  return {index, begin, begin + std::min(tile_size, samples - begin)};
}

TileThread::TileThread() : intra_threads_(at::get_num_threads()), executor_optimize_(torch::jit::getGraphExecutorOptimize()) {
  // Even when the count is already 1: a fresh thread starts OpenMP threads until it was told itself.
  at::set_num_threads(1);
  torch::jit::setGraphExecutorOptimize(false);
}

TileThread::~TileThread() {
  at::set_num_threads(intra_threads_);
  torch::jit::setGraphExecutorOptimize(executor_optimize_);
}

void for_each_tile(std::int64_t samples, std::int64_t tile_size, int threads, const std::function<void(const Tile&)>& work,
                   const std::function<bool(const Tile&)>& skip, const std::function<std::int64_t()>& take) {
  HOLDFAST_CHECK(threads >= 0);
  // Held here for the workers' sake too: part of the thread count is shared by all threads, so a worker that ends
  // must find 1 to go back to while others still compute.
  const TileThread here;
  Queue queue(samples, tile_size, skip, take);
  const std::int64_t wanted = threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : threads;
  const std::int64_t workers = std::min(wanted, tile_count(samples, tile_size));
  if (workers <= 1) {
    work_through(queue, work);
  } else {
    // Workers compute under the caller's grad mode and the like, as one thread would.
    const at::ThreadLocalState state;
    std::vector<std::jthread> pool;
    for (std::int64_t i = 0; i < workers; ++i) {
      pool.emplace_back([&] {
        const at::ThreadLocalStateGuard same_state(state);
        const TileThread worker;
        work_through(queue, work);
      });
    }
  }
  queue.throw_what_went_wrong();
}

}  // namespace holdfast
