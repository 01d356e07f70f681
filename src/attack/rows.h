// The arithmetic of threat models on rows of float or double, in plain loops and double precision. On small samples a
// tensor operation costs more than the row's arithmetic; and where a bound is to hold, rounding to float must be watched.
#pragma once

#include <cstdint>
#include <span>

#include "holdfast/attack/threat.h"

namespace holdfast::attack {

// Brings back a row that left what the threat's options beside the ball allow, element by element, in place. Returns whether it
// was outside. Defined in threat.cpp, beside what reads the options.
template <class Number>
bool confine(const ThreatModel& threat, std::int64_t n, const Number* clean, Number* point);

namespace rows {

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
void project(const ThreatModel& threat, Shape shape, const Number* clean, Number* points, char* moved = nullptr);

// next <- point - step * direction (descend.h); not projected. `broken` and `without_gradient`, unless null, have one entry for
// each row: whether its gradient had elements that are not finite, and whether it had nothing to follow. Parts of a row that have
// balls of their own are rows here.
template <class Number>
void step(Norm norm, Shape shape, const Number* points, const Number* gradient, double step, Number* next, char* broken = nullptr,
          char* without_gradient = nullptr);

// next <- keep * before + gradient / ||gradient||_1, row by row; `before` may be null.
template <class Number>
void mix(Shape shape, double keep, const Number* before, const Number* gradient, Number* next);

}  // namespace rows

rows::Shape rows_of(const at::Tensor& batch);

}  // namespace holdfast::attack
