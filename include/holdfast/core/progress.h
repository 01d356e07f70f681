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
  void advance_found(std::int64_t amount);  // the same for what was done before: it does not count for the rate
  void set(std::int64_t done);              // what a first call finds done does not count for the rate
  void note(std::string text);              // shown at the end of the line: "loss 0.31"
  // Units that are done of a tile under way, which `advance` will count as a whole; taken back before it does.
  void add_part(double units);

  // Of work in pieces. Several may be under way; `begin_part` and `advance` are for the one begun last.
  void begin(std::size_t piece);
  // What `advance` counts from now on are so many units, and these are this share of the piece.
  void begin_part(double share, std::int64_t units);
  void finish(std::size_t piece);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast
