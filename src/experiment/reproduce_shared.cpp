#include "reproduce_shared.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "holdfast/core/interrupt.h"
#include "holdfast/core/tiles.h"

namespace holdfast::experiment {

void for_each_shared(std::int64_t count, int threads, const std::function<bool(std::int64_t)>& done) {
  std::mutex mutex;
  std::vector<std::int64_t> elsewhere;
  for_each_tile(count, 1, threads, [&](const Tile& tile) {
    if (done(tile.index)) return;
    const std::lock_guard guard(mutex);
    elsewhere.push_back(tile.index);
  });
  for (const std::int64_t piece : elsewhere) {
    while (!done(piece)) {
      throw_if_interrupted();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
}

}  // namespace holdfast::experiment
