#include "pair_loops.h"

#include <cmath>
#include <cstring>

namespace holdfast::measure::pair_loops {
namespace {

// Two numbers at a time, which every x86-64 and ARM processor takes at once.
using Two = double __attribute__((vector_size(16)));

Two load(const double* from) {
  Two two;
  std::memcpy(&two, from, sizeof(two));
  return two;
}
Two size_of(Two x) {
  return x < 0 ? -x : x;
}
double sum_of(Two a, Two b) {
  const Two all = a + b;
  return all[0] + all[1];
}

}  // namespace

Distances distances(std::int64_t n, const double* a, const double* b, const double* r, const double* s) {
  Two minus[2] = {}, plus[2] = {}, spread[2] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::int64_t j = 0; j < 2; ++j) {
      const std::int64_t at = i + 2 * j;
      const Two x = load(a + at), y = load(b + at), both = load(r + at) + load(s + at);
      minus[j] += (x - y) * (x - y);
      plus[j] += (x + y) * (x + y);
      spread[j] += both * both;
    }
  }
  for (; i < n; ++i) {
    minus[0][0] += (a[i] - b[i]) * (a[i] - b[i]);
    plus[0][0] += (a[i] + b[i]) * (a[i] + b[i]);
    spread[0][0] += (r[i] + s[i]) * (r[i] + s[i]);
  }
  const double more = std::sqrt(sum_of(spread[0], spread[1]));
  return {std::sqrt(sum_of(minus[0], minus[1])) + more, std::sqrt(sum_of(plus[0], plus[1])) + more};
}

Distances weighted_distances(std::int64_t n, const double* half, const double* a, const double* b) {
  Two minus[2] = {}, plus[2] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::int64_t j = 0; j < 2; ++j) {
      const std::int64_t at = i + 2 * j;
      const Two x = load(a + at), y = load(b + at), weight = load(half + at);
      minus[j] += weight * size_of(x - y);
      plus[j] += weight * size_of(x + y);
    }
  }
  for (; i < n; ++i) {
    minus[0][0] += half[i] * std::fabs(a[i] - b[i]);
    plus[0][0] += half[i] * std::fabs(a[i] + b[i]);
  }
  return {sum_of(minus[0], minus[1]), sum_of(plus[0], plus[1])};
}

}  // namespace holdfast::measure::pair_loops
