// How long work in pieces of different cost still takes: apart from clocks and threads, so that it can be tested.
//
// What a unit of cost takes is read off the pieces that were begun, each kind by itself. A kind of which nothing was done yet
// takes what the middle one took of those that differ in their first line alone, as the same attack on another model; where there
// are none, the middle one of all. Pieces may run side by side; they take as much less time as they did so far.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/progress.h"

namespace holdfast {

class TimeLeft {
 public:
  explicit TimeLeft(const std::vector<WorkPiece>& pieces);

  // `now` is in seconds, of any clock that only goes on.
  void begin(std::size_t piece, double now);
  void reach(std::size_t piece, double share);     // of the piece
  void find_done(std::size_t piece, double more);  // this share was there before: it says nothing about the pace
  void finish(std::size_t piece, double now);

  // Nothing while the pace is not known.
  std::optional<double> seconds(double now) const;
  // Of all work, by the time that it takes.
  double share(double now) const;

 private:
  struct Piece {
    WorkPiece work;
    double began = -1, ended = -1;     // below 0: not yet
    double share = 0, found_done = 0;  // all that is done of it, and what of this was there before
  };
  struct Pace {
    double seconds = 0, cost = 0;
    double rate() const { return seconds / cost; }
  };
  struct Totals {
    double spent = 0, done = 0, left = 0;  // in seconds of one worker
  };

  static double spent(const Piece& piece, double now);
  std::optional<Totals> totals(double now) const;

  std::vector<Piece> pieces_;
};

}  // namespace holdfast
