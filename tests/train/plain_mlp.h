// A network with one hidden layer in plain loops and double precision: probabilities, their gradients and Hessians by the chain
// rule. What objectives are held against.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "holdfast/core/torch.h"
#include "holdfast/data/schema.h"
#include "holdfast/model/network.h"

namespace holdfast::train {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

inline Vector to_vector(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

inline Matrix to_matrix(const at::Tensor& tensor) {
  Matrix rows;
  for (std::int64_t i = 0; i < tensor.size(0); ++i) rows.push_back(to_vector(tensor[i]));
  return rows;
}

inline double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
inline double length(const Vector& v) {
  return std::sqrt(dot(v, v));
}

class PlainMlp {
 public:
  // Of input, linear, activation (relu or softplus), linear.
  explicit PlainMlp(const Network& network)
      : activation_(std::get<op::Activation>(network.nodes()[2].operation)),
        first_(to_matrix(std::get<op::Linear>(network.nodes()[1].operation).weight)),
        second_(to_matrix(std::get<op::Linear>(network.nodes()[3].operation).weight)),
        first_bias_(to_vector(std::get<op::Linear>(network.nodes()[1].operation).bias)),
        second_bias_(to_vector(std::get<op::Linear>(network.nodes()[3].operation).bias)) {}

  const Matrix& first() const { return first_; }
  const Matrix& second() const { return second_; }

  Vector hidden(const Vector& x) const {
    Vector z;
    for (std::size_t h = 0; h < first_.size(); ++h) z.push_back(dot(first_[h], x) + first_bias_[h]);
    return z;
  }

  Vector probabilities(const Vector& x) const {
    Vector active = hidden(x), p;
    for (double& value : active) value = act(value, 0);
    double sum = 0;
    for (std::size_t c = 0; c < second_.size(); ++c)
      sum += (p.push_back(std::exp(dot(second_[c], active) + second_bias_[c])), p.back());
    for (double& value : p) value /= sum;
    return p;
  }

  std::size_t predicted(const Vector& x) const {
    const Vector p = probabilities(x);
    return static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  }

  double ce(const Vector& x, std::size_t label) const { return -std::log(probabilities(x)[label]); }

  // d p_c / dx.
  Vector gradient(const Vector& x, std::size_t c) const {
    const Vector p = probabilities(x);
    return combined(slopes(x), [&](std::size_t a) { return p[c] * ((a == c) - p[a]); });
  }

  // d2 p_c / dx2 = J^T Q J + sum_a (dp_c / dz_a) H_a.
  Matrix hessian(const Vector& x, std::size_t c) const {
    const Vector p = probabilities(x);
    const auto q = [&](std::size_t a, std::size_t b) {
      return p[c] * (((a == c) - p[a]) * ((b == c) - p[b]) - p[a] * ((a == b) - p[b]));
    };
    return second_order(x, q, [&](std::size_t a) { return p[c] * ((a == c) - p[a]); });
  }

  // Of -log p_y.
  Matrix ce_hessian(const Vector& x, std::size_t label) const {
    const Vector p = probabilities(x);
    return second_order(
        x, [&](std::size_t a, std::size_t b) { return p[a] * ((a == b) - p[b]); },
        [&](std::size_t a) { return p[a] - (a == label); });
  }

  // Derivative of the given order.
  double act(double z, int order) const {
    if (activation_.kind == op::Activation::Kind::kRelu) return order == 0 ? std::max(z, 0.0) : (order == 1 && z > 0 ? 1 : 0);
    const double beta = activation_.parameter, s = 1 / (1 + std::exp(-beta * z));
    return order == 0 ? std::log1p(std::exp(beta * z)) / beta : (order == 1 ? s : beta * s * (1 - s));
  }

 private:
  // d z_a / dx, [classes][n].
  Matrix slopes(const Vector& x) const {
    const Vector z = hidden(x);
    Matrix result(second_.size(), Vector(x.size(), 0));
    for (std::size_t a = 0; a < second_.size(); ++a) {
      for (std::size_t h = 0; h < z.size(); ++h) {
        for (std::size_t i = 0; i < x.size(); ++i) result[a][i] += second_[a][h] * act(z[h], 1) * first_[h][i];
      }
    }
    return result;
  }

  static Vector combined(const Matrix& rows, const std::function<double(std::size_t)>& weight) {
    Vector result(rows[0].size(), 0);
    for (std::size_t a = 0; a < rows.size(); ++a) {
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += weight(a) * rows[a][i];
    }
    return result;
  }

  Matrix second_order(const Vector& x, const std::function<double(std::size_t, std::size_t)>& q,
                      const std::function<double(std::size_t)>& slope) const {
    const Matrix j = slopes(x);
    const Vector z = hidden(x);
    Matrix result(x.size(), Vector(x.size(), 0));
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        for (std::size_t a = 0; a < j.size(); ++a) {
          for (std::size_t b = 0; b < j.size(); ++b) result[i][k] += q(a, b) * j[a][i] * j[b][k];
          for (std::size_t h = 0; h < z.size(); ++h)
            result[i][k] += slope(a) * second_[a][h] * act(z[h], 2) * first_[h][i] * first_[h][k];
        }
      }
    }
    return result;
  }

  op::Activation activation_;
  Matrix first_, second_;
  Vector first_bias_, second_bias_;
};

inline Vector times(const Matrix& matrix, const Vector& v) {
  Vector result;
  for (const Vector& row : matrix) result.push_back(dot(row, v));
  return result;
}

// Each group's mean taken from its columns.
inline Vector plainly_projected(Vector v, const Schema& schema) {
  for (const Group& group : schema.groups) {
    double sum = 0;
    for (const std::int64_t column : group.columns) sum += v[static_cast<std::size_t>(column)];
    for (const std::int64_t column : group.columns)
      v[static_cast<std::size_t>(column)] -= sum / static_cast<double>(group.columns.size());
  }
  return v;
}

// Features by descending magnitude.
inline std::vector<std::size_t> ranking(const Vector& v) {
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return std::abs(v[a]) > std::abs(v[b]); });
  return order;
}

// The pairs of features, the upper one first: every one across rank k, or the `count` around it.
inline std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const Vector& v, std::size_t k, std::size_t count) {
  const auto order = ranking(v);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  if (count == 0) {
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = k; j < v.size(); ++j) pairs.emplace_back(order[i], order[j]);
    }
  }
  for (std::size_t m = 0; m < count; ++m) pairs.emplace_back(order[k - 1 - m], order[k + m]);
  return pairs;
}

}  // namespace holdfast::train
