// Progress: on a terminal one line that is redrawn, with rate and time left; in a log a line every ten percent or
// thirty seconds, whichever is rarer. Silent under --quiet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast {

// A part of the work. Pieces of one kind take a time in proportion to their cost, in any unit.
struct WorkPiece {
  std::string kind = {};
  double cost = 1;
};

class Progress {
 public:
  // `total` 0: not known. Unit "B" is shown in MB.
  Progress(std::string what, std::int64_t total, std::string unit = "");
  // Work in pieces of different cost: its share and the time left follow from what the pieces took so far.
  Progress(std::string what, const std::vector<WorkPiece>& pieces);
  ~Progress();  // ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // All are thread-safe.
  void advance(std::int64_t amount = 1);
  void set(std::int64_t done);          // what a first call finds done does not count for the rate
  void find_done(std::int64_t amount);  // as `advance`, of what was done before: it does not count for the rate
  void note(std::string text);          // shown at the end of the line: "loss 0.31"

  // Of work in pieces: `advance` counts the units of the piece that was begun last, which are this share of it.
  void begin(std::size_t piece, std::int64_t units = 1, double share = 1);
  // The units before are done: now `advance` counts these, another share of the same piece. False, and nothing, for other work.
  bool go_on(std::int64_t units, double share);
  void finish(std::size_t piece);

 private:
  friend class TileWork;
  void add_part(double units);  // of what `advance` will count as a whole

  struct State;
  std::unique_ptr<State> state_;
};

// What the calling thread has done of a tile, for a Progress that counts whole tiles: while it lives, `report` moves the line.
// Loops report what they do; where nobody listens that costs nothing.
class TileWork {
 public:
  // `units` of the progress, which may be null, and the work that they are expected to take, in any unit.
  TileWork(Progress* progress, std::int64_t units, double expected);
  ~TileWork();  // an `advance` of this thread follows, which counts the tile as a whole; not after an exception
  TileWork(const TileWork&) = delete;
  TileWork& operator=(const TileWork&) = delete;

  static void report(double done);  // since the last report
  static void expect(double left);  // from now on, where more is known

 private:
  void show();

  Progress* progress_;
  TileWork* outer_;
  double units_, done_ = 0, left_, shown_ = 0;
};

}  // namespace holdfast
