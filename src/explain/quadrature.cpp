#include "quadrature.h"

#include <cmath>
#include <numbers>

#include "holdfast/core/error.h"

namespace holdfast::explain {
namespace {

struct Legendre {
  double value, slope;
};

// The polynomial of this degree at x in (-1, 1), by its three-term recurrence.
Legendre legendre(std::int64_t degree, double x) {
  double before = 1, value = x;
  for (std::int64_t k = 2; k <= degree; ++k) {
    const double next =
        (static_cast<double>(2 * k - 1) * x * value - static_cast<double>(k - 1) * before) / static_cast<double>(k);
    before = value;
    value = next;
  }
  return {value, static_cast<double>(degree) * (x * value - before) / (x * x - 1)};
}

// Newton's method from a cosine that is close to each root.
Quadrature gauss(std::int64_t steps) {
  Quadrature result;
  for (std::int64_t k = steps; k >= 1; --k) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(k) - 0.25) / (static_cast<double>(steps) + 0.5));
    for (int i = 0; i < 8; ++i) {
      const Legendre here = legendre(steps, x);
      x -= here.value / here.slope;
    }
    const double slope = legendre(steps, x).slope;
    result.points.push_back((1 + x) / 2);
    result.weights.push_back(1 / ((1 - x * x) * slope * slope));  // on [-1, 1] twice that
  }
  return result;
}

Quadrature evenly(std::int64_t steps, double first, double step) {
  Quadrature result;
  for (std::int64_t k = 0; k < steps; ++k) result.points.push_back((first + static_cast<double>(k)) * step);
  result.weights.assign(static_cast<std::size_t>(steps), step);
  return result;
}

}  // namespace

Quadrature quadrature(const std::string& rule, std::int64_t steps) {
  HOLDFAST_CHECK(steps >= 1);
  const double step = 1 / static_cast<double>(steps);
  Quadrature result;
  if (rule == "left") {
    result = evenly(steps, 0, step);
  } else if (rule == "middle") {
    result = evenly(steps, 0.5, step);
  } else if (rule == "gauss") {
    result = gauss(steps);
  } else if (rule == "trapezoid") {
    if (steps < 2) usage_error("rule=trapezoid: steps is 1; a trapezoid has two ends, choose steps >= 2");
    result = evenly(steps, 0, 1 / static_cast<double>(steps - 1));
    result.weights.front() /= 2;
    result.weights.back() /= 2;
    result.points.back() = 1;
  } else {
    HOLDFAST_CHECK(rule == "right");
    result = evenly(steps, 1, step);
    result.points.back() = 1;
  }
  return result;
}

}  // namespace holdfast::explain
