#include "graph_windows.h"

#include <algorithm>
#include <vector>

namespace holdfast {
namespace {

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

}  // namespace holdfast
