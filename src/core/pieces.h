// Work in pieces as Progress counts it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "time_left.h"

namespace holdfast {

// The pieces, and how far the one is that was begun last: whole parts of it, and the part that `advance` counts.
class Pieces {
 public:
  explicit Pieces(const std::vector<WorkPiece>& pieces) : time_(pieces) {}

  void begin(std::size_t piece, double now) {
    time_.begin(piece, now);
    piece_ = piece;
    earlier_parts_ = part_ = done_ = 0;
  }
  void begin_part(double share, std::int64_t units) {
    earlier_parts_ += part_;
    part_ = share;
    units_ = static_cast<double>(std::max<std::int64_t>(1, units));
    done_ = 0;
  }
  void advance(std::int64_t units) { done_ += static_cast<double>(units); }
  void advance_found(std::int64_t units) {
    advance(units);
    if (piece_) time_.find_done(*piece_, part_ * static_cast<double>(units) / units_);
  }
  void finish(std::size_t piece, double now) {
    time_.finish(piece, now);
    if (piece_ == piece) piece_.reset();
  }
  // `tiles`: units of tiles that are under way.
  const TimeLeft& reach(double tiles) {
    if (piece_) time_.reach(*piece_, earlier_parts_ + part_ * std::min(1.0, (done_ + tiles) / units_));
    return time_;
  }

 private:
  TimeLeft time_;
  std::optional<std::size_t> piece_;
  double earlier_parts_ = 0, part_ = 0, units_ = 1, done_ = 0;
};

}  // namespace holdfast
