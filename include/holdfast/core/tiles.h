// The tile: a run's samples are cut by index into tiles of a fixed size. A tile is computed by one thread with
// intra-operator parallelism 1, and tiles run side by side. It is the unit of work, of resuming, of progress and of
// distribution, so results are the same bytes for any number of threads, ranks or interruptions.
#pragma once

#include <cstdint>
#include <functional>

namespace holdfast {

struct Tile {
  std::int64_t index = 0;  // of the tile
  std::int64_t begin = 0;  // first sample
  std::int64_t end = 0;    // one past the last
  std::int64_t size() const { return end - begin; }
};

std::int64_t tile_count(std::int64_t samples, std::int64_t tile_size);
Tile tile_at(std::int64_t samples, std::int64_t tile_size, std::int64_t index);

// Makes the calling thread fit for tiles: one intra-operator thread, no profiling TorchScript executor. RAII: the
// destructor restores what was.
class TileThread {
 public:
  TileThread();
  ~TileThread();
  TileThread(const TileThread&) = delete;
  TileThread& operator=(const TileThread&) = delete;

 private:
  int intra_threads_;
  bool executor_optimize_;
};

// Calls work(tile) for every tile on `threads` threads (0: one for each core; 1: the calling thread). Tiles start in
// order of index. The first exception stops new tiles, waits for running ones and is thrown again; so does an
// interrupt. `skip(tile)` true leaves a tile out: it was done before. `take` gives the index of the next tile where others
// work on the same tiles; one past the last ends this process's part.
void for_each_tile(std::int64_t samples, std::int64_t tile_size, int threads, const std::function<void(const Tile&)>& work,
                   const std::function<bool(const Tile&)>& skip = {}, const std::function<std::int64_t()>& take = {});

}  // namespace holdfast
