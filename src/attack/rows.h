// The arithmetic of threat models on rows of float or double, in plain loops and double precision. On small samples a
// tensor operation costs more than the row's arithmetic; and where a bound is to hold, rounding to float must be watched.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "holdfast/attack/norm.h"
#include "holdfast/attack/valid_rows.h"

namespace holdfast::attack::rows {

// A ThreatModel without tensors.
struct Bounds {
  Norm norm = Norm::kL2;
  double epsilon = 0;
  std::optional<std::pair<double, double>> box = {};
  const bool* frozen = nullptr;      // one for each element of a row, or none
  bool non_negative = false;         // rows whose clean elements are all >= 0 stay so
  const ValidRows* valid = nullptr;  // or none

  bool is_frozen(std::int64_t i) const { return frozen != nullptr && frozen[i]; }
};

// `count` rows of `n` elements, one after the other.
struct Shape {
  std::int64_t count = 0;
  std::int64_t n = 0;
};

// The norm of a vector, and of the difference of two.
double size(Norm norm, std::span<const double> vector);
template <class Number>
double distance(Norm norm, std::int64_t n, const Number* clean, const Number* point);

// ThreatModel::project, in place. `moved`, unless null, has one entry for each row: whether it had to be moved.
template <class Number>
void project(const Bounds& bounds, Shape shape, const Number* clean, Number* points, char* moved = nullptr);

// next <- point - step * direction (descend.h); not projected. `broken` and `without_gradient`, unless null, have one entry for
// each row: whether its gradient had elements that are not finite, and whether it had nothing to follow.
template <class Number>
void step(Norm norm, Shape shape, const Number* points, const Number* gradient, double step, Number* next, char* broken = nullptr,
          char* without_gradient = nullptr);

}  // namespace holdfast::attack::rows
