#include "min_norm.h"

#include <algorithm>
#include <cmath>

#include "holdfast/core/error.h"

namespace holdfast::attack {
namespace {

// What counts as zero, relative to the largest inner product.
constexpr double kRounding = 1e-12;

// Solves a small symmetric system by elimination with pivoting; a vanishing pivot leaves its unknown at zero.
std::vector<double> solve(std::vector<double> matrix, std::vector<double> right) {
  const std::size_t n = right.size();
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  const auto at = [&](std::size_t row, std::size_t column) -> double& { return matrix[order[row] * n + column]; };
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::abs(at(row, column)) > std::abs(at(pivot, column))) pivot = row;
    }
    std::swap(order[column], order[pivot]);
    if (at(column, column) == 0) continue;
    for (std::size_t row = column + 1; row < n; ++row) {
      const double factor = at(row, column) / at(column, column);
      for (std::size_t i = column; i < n; ++i) at(row, i) -= factor * at(column, i);
      right[order[row]] -= factor * right[order[column]];
    }
  }
  std::vector<double> x(n, 0.0);
  for (std::size_t row = n; row-- > 0;) {
    double sum = right[order[row]];
    for (std::size_t i = row + 1; i < n; ++i) sum -= at(row, i) * x[i];
    x[row] = at(row, row) == 0 ? 0 : sum / at(row, row);
  }
  return x;
}

class Wolfe {
 public:
  Wolfe(std::span<const double> products, std::size_t m) : products_(products), m_(m), weights_(m, 0.0) {
    for (const double product : products) largest_ = std::max(largest_, std::abs(product));
  }

  std::vector<double> run() {
    std::size_t shortest = 0;
    for (std::size_t q = 1; q < m_; ++q) {
      if (product(q, q) < product(shortest, shortest)) shortest = q;
    }
    weights_[shortest] = 1;
    active_ = {shortest};
    // Every round shortens the vector, so no active set comes twice: there are fewer rounds than sets; usually a few.
    for (std::size_t round = 0; round < 50 * m_; ++round) {
      const std::size_t next = lowest();
      if (against_point(next) >= squared_length() - kRounding * largest_ || is_active(next)) break;
      active_.push_back(next);
      while (!move_to_affine_minimum()) {
      }
    }
    return weights_;
  }

 private:
  double product(std::size_t q, std::size_t r) const { return products_[q * m_ + r]; }
  bool is_active(std::size_t q) const { return std::find(active_.begin(), active_.end(), q) != active_.end(); }

  // Inner product of vector q with the present point.
  double against_point(std::size_t q) const {
    double sum = 0;
    for (std::size_t r = 0; r < m_; ++r) sum += weights_[r] * product(q, r);
    return sum;
  }
  double squared_length() const {
    double sum = 0;
    for (std::size_t q = 0; q < m_; ++q) sum += weights_[q] * against_point(q);
    return sum;
  }
  std::size_t lowest() const {
    std::size_t best = 0;
    for (std::size_t q = 1; q < m_; ++q) {
      if (against_point(q) < against_point(best)) best = q;
    }
    return best;
  }

  // Weights, summing to 1, of the shortest vector in the affine hull of the active vectors. Lambda is scaled to the products.
  std::vector<double> affine_minimum() const {
    const std::size_t n = active_.size() + 1;
    const double one = std::max(largest_, 1e-300);
    std::vector<double> matrix(n * n, 0.0), right(n, 0.0);
    for (std::size_t i = 0; i + 1 < n; ++i) {
      for (std::size_t j = 0; j + 1 < n; ++j)
        matrix[i * n + j] = product(active_[i], active_[j]) + (i == j ? kRounding * one : 0);
      matrix[i * n + n - 1] = matrix[(n - 1) * n + i] = one;
    }
    right[n - 1] = one;
    std::vector<double> weights = solve(std::move(matrix), std::move(right));
    weights.pop_back();
    return weights;
  }

  // Goes there when it lies inside the hull; otherwise to the border on the way, where a vector drops out: false.
  bool move_to_affine_minimum() {
    const std::vector<double> goal = affine_minimum();
    double share = 1;
    std::size_t dropped = m_;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const double here = weights_[active_[i]];
      if (goal[i] > 0) continue;
      const double until_zero = here - goal[i] > 0 ? here / (here - goal[i]) : 0;
      if (until_zero < share) {
        share = until_zero;
        dropped = active_[i];
      }
    }
    for (std::size_t i = 0; i < active_.size(); ++i) weights_[active_[i]] += share * (goal[i] - weights_[active_[i]]);
    if (dropped == m_) return true;
    weights_[dropped] = 0;
    std::erase(active_, dropped);
    return active_.size() <= 1;
  }

  std::span<const double> products_;
  std::size_t m_;
  std::vector<double> weights_;
  std::vector<std::size_t> active_;
  double largest_ = 0;
};

// Finds where the line between two vectors is nearest to zero.
std::vector<double> of_two(std::span<const double> products) {
  const double aa = products[0], ab = products[1], bb = products[3];
  const double apart = aa - 2 * ab + bb;
  const double a = apart > 0 ? std::clamp((bb - ab) / apart, 0.0, 1.0) : 0.5;
  return {a, 1 - a};
}

}  // namespace

std::vector<double> min_norm_weights(std::span<const double> products, std::size_t m) {
  HOLDFAST_CHECK(m > 0 && products.size() == m * m);
  if (m == 1) return {1.0};
  return m == 2 ? of_two(products) : Wolfe(products, m).run();
}

}  // namespace holdfast::attack
