// The least top-k overlap that any point of an l2 ball can have, exactly, for networks with one hidden layer of ReLUs and two
// classes. Inside one activation pattern the gradient is constant, so it is enough to know which patterns are reachable: units
// are decided one after the other, and a branch is followed when the nearest point that satisfies all its half-spaces, the one
// of the class included, lies in the ball.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

namespace holdfast::testing_support {
using namespace attack;

// The logit of the predicted class above the other one's: out . relu(weight x + bias) + offset.
struct OneHiddenLayer {
  std::vector<std::vector<double>> weight;
  std::vector<double> bias, out;
  double offset = 0;

  std::vector<double> units(const std::vector<double>& x) const {
    std::vector<double> z = bias;
    for (std::size_t h = 0; h < z.size(); ++h) z[h] = std::inner_product(x.begin(), x.end(), weight[h].begin(), z[h]);
    return z;
  }
  // The gradient where the units in `on` are active.
  std::vector<double> gradient(const std::vector<char>& on) const {
    std::vector<double> g(weight[0].size());
    for (std::size_t h = 0; h < on.size(); ++h) {
      for (std::size_t i = 0; on[h] && i < g.size(); ++i) g[i] += out[h] * weight[h][i];
    }
    return g;
  }
};

// The k largest magnitudes, the lower position on ties.
inline std::set<std::size_t> largest(const std::vector<double>& values, std::size_t k) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return std::abs(values[a]) > std::abs(values[b]); });
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k)};
}

// Kendall's tau-b of two maps of magnitudes, pair by pair.
inline double plain_tau(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0, untied_a = 0, untied_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double in_a = std::abs(a[i]) - std::abs(a[j]), in_b = std::abs(b[i]) - std::abs(b[j]);
      sum += in_a * in_b > 0 ? 1 : in_a * in_b < 0 ? -1 : 0;
      untied_a += in_a != 0;
      untied_b += in_b != 0;
    }
  }
  return sum / std::sqrt(untied_a * untied_b);
}

class PatternSearch {
 public:
  // k = 0: in place of the overlap, Kendall's tau-b.
  PatternSearch(const OneHiddenLayer& net, std::vector<double> x, double radius, std::size_t k, double margin)
      : net_(net), z_(net.units(x)), radius_(radius), k_(k), margin_(margin) {
    for (const double z : z_) on_.push_back(z > 0);
    clean_ = largest(net.gradient(on_), k);
    clean_map_ = net.gradient(on_);
    for (std::size_t h = 0; h < z_.size(); ++h) {
      if (std::abs(z_[h]) <= radius * norm(net.weight[h])) open_.push_back(h);
    }
    decide(0);
  }

  double least() const { return least_; }
  std::size_t patterns() const { return patterns_; }
  double overlap(const std::vector<char>& on) const {
    if (k_ == 0) return plain_tau(clean_map_, net_.gradient(on));
    std::size_t kept = 0;
    for (const std::size_t i : largest(net_.gradient(on), k_)) kept += clean_.count(i);
    return static_cast<double>(kept) / static_cast<double>(k_);
  }

 private:
  struct HalfSpace {
    std::vector<double> normal;
    double at_least;  // normal . move >= at_least
  };

  static double norm(const std::vector<double>& v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); }

  void decide(std::size_t next) {
    if (next == open_.size()) {
      spaces_.push_back(class_kept());
      if (reachable()) {
        ++patterns_;
        least_ = std::min(least_, overlap(on_));
      }
      spaces_.pop_back();
      return;
    }
    const std::size_t h = open_[next];
    for (const char side : {1, 0}) {
      on_[h] = side;
      spaces_.push_back(side ? HalfSpace{net_.weight[h], -z_[h]} : HalfSpace{negated(net_.weight[h]), z_[h]});
      if (reachable()) decide(next + 1);
      spaces_.pop_back();
    }
  }

  static std::vector<double> negated(std::vector<double> v) {
    for (double& value : v) value = -value;
    return v;
  }

  HalfSpace class_kept() const {
    double here = net_.offset;
    for (std::size_t h = 0; h < on_.size(); ++h) here += on_[h] ? net_.out[h] * z_[h] : 0;
    return {net_.gradient(on_), margin_ - here};
  }

  // Hildreth's method for the shortest move inside all half-spaces: a multiplier for each, raised one at a time. The dual value
  // is a lower bound for half its squared length, so being out of reach is proved; being in reach is shown by a point.
  bool reachable() const {
    const std::size_t n = net_.weight[0].size();
    std::vector<double> move(n), multiplier(spaces_.size());
    for (int sweep = 0; sweep < 100000; ++sweep) {
      double bound = 0, missing = 0;
      for (std::size_t s = 0; s < spaces_.size(); ++s) {
        const auto& [a, b] = spaces_[s];
        const double square = std::inner_product(a.begin(), a.end(), a.begin(), 0.0);
        const double short_of = b - std::inner_product(a.begin(), a.end(), move.begin(), 0.0);
        const double raised = std::max(0.0, multiplier[s] + short_of / square);
        for (std::size_t i = 0; i < n; ++i) move[i] += (raised - multiplier[s]) * a[i];
        multiplier[s] = raised;
      }
      for (std::size_t s = 0; s < spaces_.size(); ++s) {
        const auto& [a, b] = spaces_[s];
        bound += multiplier[s] * b;
        missing = std::max(missing, (b - std::inner_product(a.begin(), a.end(), move.begin(), 0.0)) / norm(a));
      }
      bound -= norm(move) * norm(move) / 2;
      if (bound > (1 - 1e-9) * radius_ * radius_ / 2) return false;
      if (missing <= 1e-9 * radius_ && norm(move) <= radius_) return true;
    }
    throw std::runtime_error("undecided");
  }

  const OneHiddenLayer& net_;
  const std::vector<double> z_;
  const double radius_;
  const std::size_t k_;
  const double margin_;
  std::vector<char> on_;
  std::set<std::size_t> clean_;
  std::vector<double> clean_map_;
  std::vector<std::size_t> open_;
  std::vector<HalfSpace> spaces_;
  double least_ = 1;
  std::size_t patterns_ = 0;
};

}  // namespace holdfast::testing_support
