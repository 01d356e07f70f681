// Tiles of samples on their way to a model and back.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/communicator.h"
#include "holdfast/core/memory.h"
#include "holdfast/core/progress.h"
#include "holdfast/core/tensor_memory.h"
#include "holdfast/core/tiles.h"
#include "holdfast/experiment/explain_all.h"

namespace holdfast::experiment {

// Side by side only when the model allows it; a device runs one tile at a time.
int threads_for(const Model& model, int threads);
std::int64_t tile_size(const TileOptions& tiles, const Layout& layout, const Model& model);

// The tiles of one piece of work that several ranks share. Every rank takes from it until there is none left.
class SharedTiles {
 public:
  // `name` is the same on all ranks and belongs to no other piece of work.
  SharedTiles(Communicator& ranks, std::string name, std::int64_t samples, Progress* progress = nullptr)
      : ranks_(ranks), name_(std::move(name)), samples_(samples), progress_(progress) {}

  // The next tile: one of this rank's own that must be tried again, else one from the queue.
  std::int64_t take();
  // A tile was computed and lies where all ranks find it.
  void finished(const Tile& tile);
  // Tiles of this rank that did not finish are handed out to it again.
  void retry_unfinished();
  // Waits until all ranks together have finished all samples. Throws OtherRankFailed when one of them failed.
  void wait_for_all();

 private:
  void show(std::int64_t done);

  Communicator& ranks_;
  const std::string name_;
  const std::int64_t samples_;
  Progress* progress_;
  std::mutex mutex_;
  std::set<std::int64_t> taken_;  // and not finished
  std::deque<std::int64_t> again_;
  std::int64_t shown_ = 0;
};

// Computes every tile and hands what came out to `keep`, each from the thread that computed it. `compute` changes nothing but its
// result: where memory runs out it is tried with fewer tiles side by side, and at last throws OutOfMemory with the tile that
// fits. With `shared`, other ranks compute some of the tiles.
template <class Compute, class Keep>
void run_tiles(const Model& model, std::int64_t samples, std::int64_t size, int threads, const Compute& compute, const Keep& keep,
               SharedTiles* shared = nullptr);

at::Tensor rows(const at::Tensor& tensor, const Tile& tile);
// On the model's device, in its precision. Of a large tensor, which may lie in a file, a copy.
at::Tensor inputs_for(const at::Tensor& inputs, const Tile& tile, const Model& model);
// Baseline and background on the model's device and in its precision: done once, before samples are cut into tiles.
Samples prepared(Samples samples, const Model& model);
// The samples of a tile for the model: on its device, in its precision, with the predicted classes where no targets are given.
Samples samples_for(const Samples& samples, const Tile& tile, const Model& model);

// For checks before any work: which class is explained decides nothing there, and predicting it would be work.
Samples with_any_targets(Samples samples);

at::Tensor to_cpu(const at::Tensor& tensor);
// Empty for an undefined tensor.
std::vector<std::int64_t> to_vector(const at::Tensor& tensor);
// Probability of the class, [B] double.
at::Tensor confidence(const at::Tensor& logits, const at::Tensor& classes);

// A map that is zero everywhere ranks nothing and cannot be moved: as a result it would pass for perfectly robust. Warns of
// some, throws kInput when all are.
void check_maps(const at::Tensor& maps, const std::string& explainer, const std::string& model);

// What a sample gets must not depend on the samples beside it, or results would depend on the tile. Throws kInput.
void check_samples_apart(const Model& model, const Samples& samples);
// As above for a model that might mix large batches only: the first and the last of so many samples by themselves, and together.
void check_tile_apart(const Model& model, const at::Tensor& inputs, std::int64_t samples);
// A model that branches on its whole batch treats samples that are alike in the same way: this puts the first of `batch`, whose
// logits are given, among rows that hold nothing but the batch's smallest and largest value, and the first one's context. A
// Network does to each sample what it does to one; others are tried, unless they were before (Capabilities::known_apart).
void check_among_extremes(const Model& model, const at::Tensor& batch, const Layout& layout, const at::Tensor& logits);
// Compares logits that are there already: a sample's own, [classes], by itself and among others.
void check_same_logits(const Model& model, const at::Tensor& alone, const at::Tensor& among_others);

// Puts the rows of tiles together, in whatever order they come; a large whole is mapped. For tensors of one row a sample.
class JoinedRows {
 public:
  // `rows` of them come; those of undefined tensors stay undefined. Several threads may add at once.
  void add(const at::Tensor& part, std::int64_t begin, std::int64_t rows);
  const at::Tensor& whole() const { return whole_; }

 private:
  std::mutex mutex_;
  at::Tensor whole_;
};

// The threads that compute so many tiles: `threads`, or one for each core.
int worker_count(int threads, std::int64_t tiles);
// For run_tiles: the number of tiles that may be side by side after memory ran out with `workers`, or a throw with what would
// fit. `try_one` computes a tile of one sample.
int fewer_workers(const OutOfMemory& error, const Model& model, int workers, std::int64_t size,
                  const std::function<void()>& try_one);

template <class Compute, class Keep>
void run_tiles(const Model& model, std::int64_t samples, std::int64_t size, int threads, const Compute& compute, const Keep& keep,
               SharedTiles* shared) {
  std::vector<char> done(static_cast<std::size_t>(tile_count(samples, size)));
  const auto is_done = [&](const Tile& tile) { return done[static_cast<std::size_t>(tile.index)] != 0; };
  Tile failed{.begin = samples};
  std::mutex mutex;
  const auto work = [&](const Tile& tile) {
    try {
      keep(tile, compute(tile));
    } catch (const std::exception& error) {
      {
        const std::lock_guard lock(mutex);
        if (tile.begin < failed.begin) failed = tile;
      }
      throw_if_out_of_memory(error);
      throw;
    }
    done[static_cast<std::size_t>(tile.index)] = 1;
    if (shared != nullptr) shared->finished(tile);
    release_pages();
  };
  const std::function<std::int64_t()> take = [&] { return shared->take(); };
  for (int workers = worker_count(threads_for(model, threads), tile_count(samples, size));;) {
    try {
      return for_each_tile(samples, size, workers, work, is_done, shared != nullptr ? take : std::function<std::int64_t()>());
    } catch (const OutOfMemory& error) {
      if (shared != nullptr) shared->retry_unfinished();
      workers = fewer_workers(error, model, workers, size, [&] {
        (void)compute(Tile{.index = failed.index, .begin = failed.begin, .end = failed.begin + 1});
      });
    }
  }
}

}  // namespace holdfast::experiment
