#include "windows.h"

#include <algorithm>
#include <vector>

namespace holdfast::metric {
namespace {

using Word = std::uint64_t;

// The next step of a dilation that has reached `reach`. What has been reached from a feature at the border is `reach` + 1 wide,
// so a shift by that much leaves no gap; the number of steps is logarithmic.
std::int64_t next_step(std::int64_t reach, std::int64_t radius) {
  return std::min(radius - reach, reach + 1);
}

// to |= from shifted by `step` columns to either side; step < 64 * count.
void or_shifted(const Word* from, Word* to, std::size_t count, std::int64_t step) {
  const auto jump = static_cast<std::size_t>(step / 64);
  const int up = static_cast<int>(step % 64), rest = 64 - up;
  for (std::size_t i = jump; i < count; ++i) {
    to[i] |= from[i - jump] << up;
    to[i - jump] |= from[i] >> up;
    if (up == 0) continue;
    if (i > jump) to[i] |= from[i - jump - 1] >> rest;
    if (i + 1 < count) to[i - jump] |= from[i + 1] << rest;
  }
}

void dilate_rows(FeatureSet& set, std::int64_t radius) {
  const std::size_t count = set.words_per_row();
  const Word mask = set.last_word_mask();
  const std::span<Word> words = set.words();
  thread_local std::vector<Word> before;
  before.resize(count);
  for (std::int64_t reach = 0; reach < radius;) {
    const std::int64_t step = next_step(reach, radius);
    if (count == 1) {
      for (Word& word : words) word = (word | word << step | word >> step) & mask;
    } else {
      for (Word* row = words.data(); row < words.data() + words.size(); row += count) {
        std::copy(row, row + count, before.begin());
        or_shifted(before.data(), row, count, step);
        row[count - 1] &= mask;
      }
    }
    reach += step;
  }
}

// One side: rows lie one after the other, so a shift by rows is a shift of the whole block.
void dilate_columns(std::span<Word> side, std::size_t words_per_row, std::int64_t radius) {
  thread_local std::vector<Word> before;
  for (std::int64_t reach = 0; reach < radius;) {
    const std::int64_t step = next_step(reach, radius);
    const std::size_t shift = static_cast<std::size_t>(step) * words_per_row;
    before.assign(side.begin(), side.end());
    for (std::size_t i = shift; i < side.size(); ++i) side[i] |= before[i - shift];
    for (std::size_t i = shift; i < side.size(); ++i) side[i - shift] |= before[i];
    reach += step;
  }
}

// Adds from[x + shift] to to[x] wherever both are inside.
void add_shifted(const double* from, double* to, std::int64_t count, std::int64_t shift) {
  const std::int64_t first = std::max<std::int64_t>(0, -shift), end = std::min(count, count - shift);
  for (std::int64_t x = first; x < end; ++x) to[x] += from[x + shift];
}

// The symmetric matrix of the edges' values, zero on the diagonal, in memory that is used again.
const std::vector<double>& matrix_of(std::span<const double> values, std::size_t nodes) {
  thread_local std::vector<double> matrix;
  matrix.assign(nodes * nodes, 0);
  std::size_t edge = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    for (std::size_t j = i + 1; j < nodes; ++j, ++edge) matrix[i * nodes + j] = matrix[j * nodes + i] = values[edge];
  }
  return matrix;
}

}  // namespace

void dilate(FeatureSet& set, std::int64_t sides, std::int64_t radius) {
  const std::int64_t height = set.rows() / sides;
  dilate_rows(set, std::min(radius, set.width() - 1));
  const std::size_t side_words = static_cast<std::size_t>(height) * set.words_per_row();
  for (std::int64_t side = 0; side < sides; ++side) {
    dilate_columns(set.words().subspan(static_cast<std::size_t>(side) * side_words, side_words), set.words_per_row(),
                   std::min(radius, height - 1));
  }
}

void window_sums(std::span<const double> values, std::int64_t sides, std::int64_t height, std::int64_t width, std::int64_t radius,
                 std::span<double> sums) {
  thread_local std::vector<double> along_rows;
  along_rows.assign(values.size(), 0);
  const std::int64_t across = std::min(radius, width - 1), down = std::min(radius, height - 1);
  for (std::int64_t row = 0; row < sides * height; ++row) {
    for (std::int64_t shift = -across; shift <= across; ++shift) {
      add_shifted(values.data() + row * width, along_rows.data() + row * width, width, shift);
    }
  }
  std::fill(sums.begin(), sums.end(), 0);
  for (std::int64_t side = 0; side < sides; ++side) {
    const double* from = along_rows.data() + side * height * width;
    double* to = sums.data() + side * height * width;
    for (std::int64_t shift = -down; shift <= down; ++shift) add_shifted(from, to, height * width, shift * width);
  }
}

void edge_window_sums(std::span<const double> values, std::int64_t node_count, std::span<double> sums) {
  const auto nodes = static_cast<std::size_t>(node_count);
  const std::vector<double>& matrix = matrix_of(values, nodes);
  const double* row = matrix.data();
  double* sum = sums.data();  // of the edges (i, i+1), (i, i+2), ...: all of them at once
  for (std::size_t i = 0; i < nodes; sum += nodes - i - 1, ++i) {
    const std::size_t count = nodes - i - 1;
    std::fill(sum, sum + count, 0.0);
    const auto add_row = [&](std::size_t a) {
      for (std::size_t j = 0; j < count; ++j) sum[j] += row[a * nodes + i + 1 + j];
    };
    const auto add_value = [&](double value) {
      for (std::size_t j = 0; j < count; ++j) sum[j] += value;
    };
    for (std::size_t a = 0; a < i; ++a) {
      add_value(row[a * nodes + i]);  // (a, i)
      add_row(a);                     // (a, j)
    }
    for (std::size_t b = i + 1; b < nodes; ++b) add_value(row[i * nodes + b]);  // (i, b)
    for (std::size_t a = i + 1; a < nodes; ++a) add_row(a);                     // (a, j) for a < j, then (j, a)
  }
}

}  // namespace holdfast::metric
