#include "rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

namespace holdfast::attack::rows {
namespace {

// Two numbers at a time, which every x86-64 and ARM processor takes at once.
using Pair = double __attribute__((vector_size(16)));

Pair load(const float* from) {
  float __attribute__((vector_size(8))) two;
  std::memcpy(&two, from, sizeof(two));
  return __builtin_convertvector(two, Pair);
}
Pair load(const double* from) {
  Pair two;
  std::memcpy(&two, from, sizeof(two));
  return two;
}

// The elements of a row, and of the difference of two.
template <class Number>
struct Vector {
  const Number* values;
  Pair two(std::int64_t i) const { return load(values + i); }
  double one(std::int64_t i) const { return static_cast<double>(values[i]); }
};
template <class Number>
struct Difference {
  const Number *values, *minus;
  Pair two(std::int64_t i) const { return load(values + i) - load(minus + i); }
  double one(std::int64_t i) const { return static_cast<double>(values[i]) - static_cast<double>(minus[i]); }
};

// Sum of term(element) in eight interleaved parts: one running sum would wait for itself at every addition.
template <class Elements, class Term>
double sum(std::int64_t n, const Elements& elements, const Term& term) {
  Pair parts[4] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::int64_t j = 0; j < 4; ++j) parts[j] += term(elements.two(i + 2 * j));
  }
  for (; i + 2 <= n; i += 2) parts[0] += term(elements.two(i));
  if (i < n) parts[1] += term(Pair{elements.one(i), 0});
  const Pair total = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  return total[0] + total[1];
}

template <class Elements>
double size_of(Norm norm, std::int64_t n, const Elements& elements) {
  if (norm == Norm::kL2) return std::sqrt(sum(n, elements, [](Pair two) { return two * two; }));
  if (norm == Norm::kL1) return sum(n, elements, [](Pair two) { return two < 0 ? -two : two; });
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(elements.one(i)));
  return largest;
}

// The square of the l2 distance in the numbers' own precision, sixteen bytes at a time: enough to see that a point lies well
// inside the ball, as nearly all do.
template <class Number>
Number rough_square(std::int64_t n, const Number* clean, const Number* point) {
  typedef Number Lanes __attribute__((vector_size(16)));  // GCC ignores the attribute in a dependent alias
  constexpr std::int64_t kLanes = 16 / sizeof(Number);
  Lanes parts[2] = {};
  std::int64_t i = 0;
  for (std::int64_t turn = 0; i + kLanes <= n; i += kLanes, turn = 1 - turn) {
    Lanes here, origin;
    std::memcpy(&here, point + i, sizeof(here));
    std::memcpy(&origin, clean + i, sizeof(origin));
    parts[turn] += (here - origin) * (here - origin);
  }
  const Lanes total = parts[0] + parts[1];
  Number result = 0;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) result += total[lane];
  for (; i < n; ++i) result += (point[i] - clean[i]) * (point[i] - clean[i]);
  return result;
}

// point <- clean + factor * (point - clean)
template <class Number>
void pull(std::int64_t n, const Number* clean, double factor, Number* point) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double origin = static_cast<double>(clean[i]);
    point[i] = static_cast<Number>(origin + factor * (static_cast<double>(point[i]) - origin));
  }
}

// The nearest point of the l1 ball: every difference shrinks by one amount, to no less than 0 (Duchi et al., ICML 2008).
template <class Number>
void shrink_l1(std::int64_t n, const Number* clean, double epsilon, Number* point) {
  std::vector<double> magnitudes(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    magnitudes[static_cast<std::size_t>(i)] = std::abs(static_cast<double>(point[i]) - static_cast<double>(clean[i]));
  }
  std::sort(magnitudes.begin(), magnitudes.end(), std::greater<>());
  double total = 0, amount = 0;
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    total += magnitudes[i];
    const double candidate = (total - epsilon) / static_cast<double>(i + 1);
    if (magnitudes[i] > candidate) amount = candidate;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const double origin = static_cast<double>(clean[i]);
    const double difference = static_cast<double>(point[i]) - origin;
    point[i] = static_cast<Number>(origin + std::copysign(std::max(0.0, std::abs(difference) - amount), difference));
  }
}

// What rounding may put outside; a step that is brought back from farther away was projected.
constexpr double kRounding = 1e-6;

// Returns whether any element was outside.
template <class Number>
bool clamp_linf(std::int64_t n, const Number* clean, double epsilon, Number* point) {
  bool outside = false;
  for (std::int64_t i = 0; i < n; ++i) {
    const double origin = static_cast<double>(clean[i]);
    const double difference = static_cast<double>(point[i]) - origin;
    if (std::abs(difference) <= epsilon) continue;
    outside |= std::abs(difference) > epsilon + kRounding * std::max(epsilon, std::abs(origin));
    point[i] = static_cast<Number>(origin + std::copysign(epsilon, difference));
    // The sum was rounded, perhaps outwards.
    if (std::abs(static_cast<double>(point[i]) - origin) > epsilon) point[i] = std::nextafter(point[i], clean[i]);
  }
  return outside;
}

// For a row of known size outside an l1 or l2 ball. What rounding puts back outside is pulled in a little more until it stays.
template <class Number>
void into_ball(const ThreatModel& threat, double size, std::int64_t n, const Number* clean, Number* point) {
  if (threat.norm == Norm::kL1) {
    shrink_l1(n, clean, threat.epsilon, point);
  } else {
    pull(n, clean, threat.epsilon / size, point);
  }
  for (double slack = 1e-7; (size = distance(threat.norm, n, clean, point)) > threat.epsilon; slack *= 4) {
    pull(n, clean, std::max(0.0, 1 - slack) * threat.epsilon / size, point);
  }
}

template <class Number>
void step_by_sign(std::int64_t n, const Number* point, const Number* gradient, double length, Number* next) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double move = gradient[i] > 0 ? length : gradient[i] < 0 ? -length : 0;
    next[i] = static_cast<Number>(static_cast<double>(point[i]) - move);
  }
}

template <class Number>
void step_along(std::int64_t n, const Number* point, const Number* gradient, Number factor, Number* next) {
  for (std::int64_t i = 0; i < n; ++i) next[i] = point[i] - factor * gradient[i];
}

}  // namespace

double size(Norm norm, std::span<const double> vector) {
  return size_of(norm, static_cast<std::int64_t>(vector.size()), Vector<double>{vector.data()});
}

template <class Number>
double distance(Norm norm, std::int64_t n, const Number* clean, const Number* point) {
  return size_of(norm, n, Difference<Number>{point, clean});
}

template <class Number>
void project(const ThreatModel& threat, Shape shape, const Number* clean, Number* points, char* moved) {
  const double surely_inside = 0.99 * threat.epsilon * threat.epsilon;
  for (std::int64_t row = 0; row < shape.count; ++row, clean += shape.n, points += shape.n) {
    bool outside = confine(threat, shape.n, clean, points);
    const std::int64_t part = shape.n / threat.blocks;
    for (std::int64_t begin = 0; begin < shape.n; begin += part) {
      const Number* origin = clean + begin;
      Number* point = points + begin;
      if (threat.norm == Norm::kLinf) {
        outside |= clamp_linf(part, origin, threat.epsilon, point);
      } else if (threat.norm != Norm::kL2 || !(static_cast<double>(rough_square(part, origin, point)) < surely_inside)) {
        const double size = distance(threat.norm, part, origin, point);
        if (size > threat.epsilon) {
          into_ball(threat, size, part, origin, point);
          outside |= size > threat.epsilon * (1 + kRounding);
        }
      }
    }
    if (moved != nullptr) moved[row] = outside ? 1 : 0;
  }
}

template <class Number>
void step(Norm norm, Shape shape, const Number* points, const Number* gradient, double length, Number* next, char* broken,
          char* without_gradient) {
  // For signs any norm will do that is zero for zeros and finite for finite elements only.
  const Norm measure = norm == Norm::kLinf ? Norm::kL1 : norm;
  std::vector<Number> mended;
  for (std::int64_t row = 0; row < shape.count; ++row, points += shape.n, gradient += shape.n, next += shape.n) {
    const Number* slope = gradient;
    double size = size_of(measure, shape.n, Vector<Number>{slope});
    if (broken != nullptr) broken[row] = std::isfinite(size) ? 0 : 1;
    if (!std::isfinite(size)) {
      mended.assign(slope, slope + shape.n);
      for (Number& element : mended) element = std::isfinite(element) ? element : Number{0};
      slope = mended.data();
      size = size_of(measure, shape.n, Vector<Number>{slope});
    }
    const bool stays = !(size > 0) || !std::isfinite(size);
    if (without_gradient != nullptr) without_gradient[row] = stays ? 1 : 0;
    if (stays) {
      std::copy(points, points + shape.n, next);
    } else if (norm == Norm::kLinf) {
      step_by_sign(shape.n, points, slope, length, next);
    } else {
      step_along(shape.n, points, slope, static_cast<Number>(length / size), next);
    }
  }
}

template <class Number>
void mix(Shape shape, double keep, const Number* before, const Number* gradient, Number* next) {
  const auto kept = static_cast<Number>(keep);
  for (std::int64_t row = 0; row < shape.count; ++row, gradient += shape.n, next += shape.n) {
    const double size = size_of(Norm::kL1, shape.n, Vector<Number>{gradient});
    const Number factor = static_cast<Number>(1 / std::max(size, static_cast<double>(std::numeric_limits<float>::min())));
    for (std::int64_t i = 0; i < shape.n; ++i) next[i] = gradient[i] * factor;
    if (before == nullptr) continue;
    for (std::int64_t i = 0; i < shape.n; ++i) next[i] += kept * before[i];
    before += shape.n;
  }
}

template double distance(Norm, std::int64_t, const float*, const float*);
template double distance(Norm, std::int64_t, const double*, const double*);
template void project(const ThreatModel&, Shape, const float*, float*, char*);
template void project(const ThreatModel&, Shape, const double*, double*, char*);
template void mix(Shape, double, const float*, const float*, float*);
template void mix(Shape, double, const double*, const double*, double*);
template void step(Norm, Shape, const float*, const float*, double, float*, char*, char*);
template void step(Norm, Shape, const double*, const double*, double, double*, char*, char*);

}  // namespace holdfast::attack::rows
