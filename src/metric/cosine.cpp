// cosine: the cosine of the angle between the two maps.
//     <a, b> / (|a| |b|)
// Maps are magnitudes, so it lies between 0 and 1. Undefined where a map is zero everywhere. A map in random order scores
// (sum a)^2 / (n |a|^2), the mean over all orders: close to 1 for flat maps.
#include <algorithm>
#include <cmath>
#include <limits>

#include "holdfast/metric/metric.h"

namespace holdfast::metric::cosine {

const MethodInfo kInfo{.name = "cosine", .summary = "cosine of the angle between the maps, 0 to 1"};

constexpr double kUndefinedCosine = std::numeric_limits<double>::quiet_NaN();

// Maps are divided by their largest value: squares must neither overflow nor vanish.
double largest(std::span<const double> values) {
  return *std::max_element(values.begin(), values.end());
}

class Cosine final : public Metric {
 public:
  explicit Cosine(const Options& options) : Metric(options.canonical()) {}

  Direction direction() const override { return Direction::kHigherIsMoreAlike; }
  Aim aim() const override { return {.at = Aim::At::kValues}; }
  void check(const Schema&) const override {}  // any map has a direction, but for zero: undefined, not wrong

  double compare(const MapView& original, const MapView& perturbed) const override {
    const double a_scale = largest(original.values), b_scale = largest(perturbed.values);
    if (a_scale == 0 || b_scale == 0) return kUndefinedCosine;
    double product = 0, a_squares = 0, b_squares = 0;
    for (std::size_t i = 0; i < original.values.size(); ++i) {
      const double a = original.values[i] / a_scale, b = perturbed.values[i] / b_scale;
      product += a * b;
      a_squares += a * a;
      b_squares += b * b;
    }
    return std::min(1.0, product / std::sqrt(a_squares * b_squares));
  }

  std::optional<double> chance(const MapView& original) const override {
    const double scale = largest(original.values);
    if (scale == 0) return kUndefinedCosine;
    double sum = 0, squares = 0;
    for (const double value : original.values) {
      sum += value / scale;
      squares += value / scale * (value / scale);
    }
    return sum * sum / (static_cast<double>(original.size()) * squares);
  }
};

void add_to(Registry<Metric>& registry) {
  registry.add<Cosine>(kInfo);
}

}  // namespace holdfast::metric::cosine
