// How far the calling thread is with a tile, for a Progress that counts whole tiles. Loops report what they have done, in any
// unit; where nobody listens that costs nothing.
#pragma once

#include <cstdint>

#include "holdfast/core/progress.h"

namespace holdfast {

class TileWork {
 public:
  // `units` of the progress, which may be null, and the work that the tile is expected to take.
  TileWork(Progress* progress, std::int64_t units, double expected);
  ~TileWork();  // takes back what it showed: now the tile is counted as a whole, or was not finished
  TileWork(const TileWork&) = delete;
  TileWork& operator=(const TileWork&) = delete;

  static void report(double done);       // since the last report
  static void expect_left(double left);  // from now on, where more is known
  double done() const { return done_; }
  // Of the calling thread's tile.
  static double done_here();
  static double left_here();

 private:
  void show();

  Progress* progress_;
  TileWork* outer_;
  double units_, done_ = 0, left_, shown_ = 0;
};

}  // namespace holdfast
