#include "holdfast/metric/swaps.h"

#include <algorithm>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast::metric {
namespace {

class OpenPairs {
 public:
  OpenPairs(std::span<const std::int8_t> open, std::size_t top, std::size_t others) : open_(open), rows_(top), columns_(others) {}

  // Whether anything remains after all rows and columns with fewer than `least` open pairs have been struck out.
  bool remain(std::int64_t least) {
    std::fill(rows_.begin(), rows_.end(), 1);
    std::fill(columns_.begin(), columns_.end(), 1);
    while (strike_out(least)) {
    }
    return std::find(rows_.begin(), rows_.end(), 1) != rows_.end();
  }

 private:
  bool strike_out(std::int64_t least) {
    std::vector<std::int64_t> in_row(rows_.size()), in_column(columns_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < columns_.size(); ++j) {
        const bool counts = rows_[i] && columns_[j] && open_[i * columns_.size() + j];
        in_row[i] += counts;
        in_column[j] += counts;
      }
    }
    bool changed = false;
    const auto strike = [&](std::vector<char>& alive, const std::vector<std::int64_t>& pairs) {
      for (std::size_t i = 0; i < alive.size(); ++i) {
        if (!alive[i] || pairs[i] >= least) continue;
        alive[i] = 0;
        changed = true;
      }
    };
    strike(rows_, in_row);
    strike(columns_, in_column);
    return changed;
  }

  std::span<const std::int8_t> open_;
  std::vector<char> rows_, columns_;  // not struck out
};

}  // namespace

std::int64_t most_swaps(std::span<const std::int8_t> open, std::int64_t top, std::int64_t others) {
  HOLDFAST_CHECK(static_cast<std::int64_t>(open.size()) == top * others);
  OpenPairs pairs(open, static_cast<std::size_t>(top), static_cast<std::size_t>(others));
  for (std::int64_t swaps = std::min(top, others); swaps > 0; --swaps) {
    if (pairs.remain(swaps)) return swaps;
  }
  return 0;
}

std::int64_t most_swaps_of_any(std::span<const std::int8_t> open, std::int64_t top, std::int64_t others) {
  HOLDFAST_CHECK(static_cast<std::int64_t>(open.size()) == top * others);
  const std::int64_t all = top + others;
  const auto is_open = [&](std::int64_t i, std::int64_t j) {
    const std::int64_t above = std::min(i, j), below = std::max(i, j);
    return above >= top || below < top || open[static_cast<std::size_t>(above * others + below - top)] != 0;
  };
  for (std::int64_t swaps = std::min(top, others); swaps > 0; --swaps) {
    std::vector<char> alive(static_cast<std::size_t>(all), 1);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::int64_t i = 0; i < all; ++i) {
        if (!alive[static_cast<std::size_t>(i)]) continue;
        std::int64_t pairs = 0;
        for (std::int64_t j = 0; j < all; ++j) pairs += i != j && alive[static_cast<std::size_t>(j)] && is_open(i, j);
        if (pairs >= swaps) continue;
        alive[static_cast<std::size_t>(i)] = 0;
        changed = true;
      }
    }
    if (std::count(alive.begin(), alive.end(), 1) >= 2 * swaps) return swaps;
  }
  return 0;
}

}  // namespace holdfast::metric
