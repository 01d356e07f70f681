// The arithmetic of threat models on one sample: plain loops in double precision over rows of float or double. A tensor
// operation costs more than a small row's arithmetic, and rounding to float must be watched where a bound is to hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "holdfast/attack/threat.h"

namespace holdfast::rows {

// Sum of term(i) over 0 <= i < n, in four interleaved parts: one running sum would wait for itself at every addition.
template <class Term>
double sum(std::int64_t n, const Term& term) {
  double parts[4] = {0, 0, 0, 0};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::int64_t j = 0; j < 4; ++j) parts[j] += term(i + j);
  }
  for (; i < n; ++i) parts[0] += term(i);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// The norm of a vector given by its elements.
template <class Element>
double size(Norm norm, std::int64_t n, const Element& element) {
  switch (norm) {
    case Norm::kL2:
      return std::sqrt(sum(n, [&](std::int64_t i) { return element(i) * element(i); }));
    case Norm::kL1:
      return sum(n, [&](std::int64_t i) { return std::abs(element(i)); });
    case Norm::kLinf:
      break;
  }
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(element(i)));
  return largest;
}

template <class Number>
double distance(Norm norm, const Number* point, const Number* clean, std::int64_t n) {
  return size(norm, n, [&](std::int64_t i) { return static_cast<double>(point[i]) - static_cast<double>(clean[i]); });
}

// point <- clean + factor * (point - clean)
template <class Number>
void pull(Number* point, const Number* clean, std::int64_t n, double factor) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double origin = static_cast<double>(clean[i]);
    point[i] = static_cast<Number>(origin + factor * (static_cast<double>(point[i]) - origin));
  }
}

// The nearest point of the l1 ball: every difference shrinks by one amount, to no less than 0 (Duchi et al., ICML 2008).
template <class Number>
void shrink_l1(Number* point, const Number* clean, std::int64_t n, double epsilon) {
  std::vector<double> magnitudes(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) magnitudes[static_cast<std::size_t>(i)] = std::abs(static_cast<double>(point[i]) - static_cast<double>(clean[i]));
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
    const double shrunk = std::max(0.0, std::abs(difference) - amount);
    point[i] = static_cast<Number>(origin + std::copysign(shrunk, difference));
  }
}

template <class Number>
void clamp_linf(Number* point, const Number* clean, std::int64_t n, double epsilon) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double origin = static_cast<double>(clean[i]);
    const double difference = static_cast<double>(point[i]) - origin;
    if (std::abs(difference) <= epsilon) continue;
    point[i] = static_cast<Number>(origin + std::copysign(epsilon, difference));
    // The sum was rounded, perhaps outwards.
    if (std::abs(static_cast<double>(point[i]) - origin) > epsilon) point[i] = std::nextafter(point[i], clean[i]);
  }
}

// Into the ball around `clean`; what rounding puts back outside is pulled in a little more until it stays.
template <class Number>
void into_ball(Norm norm, double epsilon, Number* point, const Number* clean, std::int64_t n) {
  if (norm == Norm::kLinf) return clamp_linf(point, clean, n, epsilon);
  double size = distance(norm, point, clean, n);
  if (size <= epsilon) return;
  if (norm == Norm::kL1) {
    shrink_l1(point, clean, n, epsilon);
  } else {
    pull(point, clean, n, epsilon / size);
  }
  for (double slack = 1e-7; (size = distance(norm, point, clean, n)) > epsilon; slack *= 4) {
    pull(point, clean, n, std::max(0.0, 1 - slack) * epsilon / size);
  }
}

// Nothing where nothing is held.
inline bool held(const bool* frozen, std::int64_t i) { return frozen != nullptr && frozen[i]; }

// threat.project on one row, in place; `frozen` may be null.
template <class Number>
void project(const ThreatModel& threat, const bool* frozen, Number* point, const Number* clean, std::int64_t n) {
  if (threat.box) {
    const auto low = static_cast<Number>(threat.box->first), high = static_cast<Number>(threat.box->second);
    for (std::int64_t i = 0; i < n; ++i) point[i] = std::clamp(point[i], low, high);
  }
  if (frozen != nullptr) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (frozen[i]) point[i] = clean[i];
    }
  }
  into_ball(threat.norm, threat.epsilon, point, clean, n);
}

}  // namespace holdfast::rows
