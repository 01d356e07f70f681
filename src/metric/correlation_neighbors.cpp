#include <cmath>
#include <vector>

#include "holdfast/core/error.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast {
namespace {

// Column after column, each with mean 0 and length 1; all zero where a column never changes.
std::vector<double> standardised_columns(std::span<const double> rows, std::size_t count, std::size_t features) {
  std::vector<double> columns(rows.size(), 0);
  for (std::size_t j = 0; j < features; ++j) {
    double* column = columns.data() + j * count;
    double mean = 0, squares = 0;
    bool constant = true;
    for (std::size_t i = 0; i < count; ++i) {
      column[i] = rows[i * features + j];
      constant = constant && column[i] == column[0];
      mean += column[i] / static_cast<double>(count);
    }
    for (std::size_t i = 0; i < count; ++i) squares += (column[i] - mean) * (column[i] - mean);
    const double length = std::sqrt(squares);
    for (std::size_t i = 0; i < count; ++i) column[i] = constant || length == 0 ? 0 : (column[i] - mean) / length;
  }
  return columns;
}

}  // namespace

std::vector<std::vector<std::int64_t>> correlation_neighbors(std::span<const double> rows, std::int64_t features,
                                                             double threshold) {
  HOLDFAST_CHECK(features > 0 && threshold > 0 && threshold <= 1);
  const auto width = static_cast<std::size_t>(features);
  const std::size_t count = rows.size() / width;
  HOLDFAST_CHECK(rows.size() == count * width);
  const std::vector<double> columns = standardised_columns(rows, count, width);
  std::vector<std::vector<std::int64_t>> neighbors(width);
  for (std::size_t a = 0; a < width; ++a) {
    for (std::size_t b = a + 1; b < width; ++b) {
      double correlation = 0;
      for (std::size_t i = 0; i < count; ++i) correlation += columns[a * count + i] * columns[b * count + i];
      // Rounding must not part columns that are copies of each other.
      if (std::abs(correlation) < threshold - 1e-12) continue;
      neighbors[a].push_back(static_cast<std::int64_t>(b));
      neighbors[b].push_back(static_cast<std::int64_t>(a));
    }
  }
  return neighbors;
}

}  // namespace holdfast
