#include "softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace holdfast::softmax_rows {

template <class Number>
void forward(Shape shape, const Number* logits, const std::int64_t* targets, Number* p, Number* r, Number* log_p_c,
             Number* log_m) {
  const std::int64_t classes = shape.classes;
  for (std::int64_t row = 0; row < shape.rows; ++row, logits += classes, p += classes, r += classes) {
    const std::int64_t c = targets[row];
    double highest_other = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < classes; ++j) {
      if (j != c) highest_other = std::max(highest_other, static_cast<double>(logits[j]));
    }
    // Both ratios from one exponential each, of a number <= 0 or the target's own.
    const double top = std::max(highest_other, static_cast<double>(logits[c]));
    const double scale = std::exp(highest_other - top);
    double others = 0;
    for (std::int64_t j = 0; j < classes; ++j) {
      const double other = static_cast<double>(logits[j]);
      const double ratio = j == c ? 0 : other == highest_other ? 1 : std::exp(other - highest_other);
      r[j] = static_cast<Number>(ratio);
      others += ratio;
    }
    const double own = std::exp(static_cast<double>(logits[c]) - top);
    const double total = own + scale * others;
    const double log_total = top + std::log(total);
    for (std::int64_t j = 0; j < classes; ++j)
      p[j] = static_cast<Number>((j == c ? own : scale * static_cast<double>(r[j])) / total);
    log_p_c[row] = static_cast<Number>(static_cast<double>(logits[c]) - log_total);
    log_m[row] = static_cast<Number>(highest_other - log_total);
  }
}

template <class Number>
void cotangent(Shape shape, const std::int64_t* targets, const Number* r, Number sign, Number* value) {
  for (std::int64_t row = 0; row < shape.rows; ++row, r += shape.classes, value += shape.classes) {
    Number sum = 0;
    for (std::int64_t j = 0; j < shape.classes; ++j) {
      sum += r[j];
      value[j] = -sign * r[j];
    }
    value[targets[row]] = sign * sum;
  }
}

template <class Number>
void backward(Shape shape, const std::int64_t* targets, const Number* p, const Number* r, const Number* weights, Number sign,
              bool with_q, Number* gradient) {
  const std::int64_t classes = shape.classes;
  for (std::int64_t row = 0; row < shape.rows; ++row, p += classes, r += classes, weights += classes, gradient += classes) {
    const std::int64_t c = targets[row];
    Number sum = 0;
    for (std::int64_t j = 0; j < classes; ++j) sum += (weights[c] - weights[j]) * r[j];
    const Number times = with_q ? 2 : 1;
    for (std::int64_t j = 0; j < classes; ++j) gradient[j] = sign * ((weights[c] - weights[j]) * r[j] - times * p[j] * sum);
    if (with_q) gradient[c] += sign * sum;
  }
}

#define HOLDFAST_INSTANTIATE(Number)                                                                    \
  template void forward(Shape, const Number*, const std::int64_t*, Number*, Number*, Number*, Number*); \
  template void cotangent(Shape, const std::int64_t*, const Number*, Number, Number*);                  \
  template void backward(Shape, const std::int64_t*, const Number*, const Number*, const Number*, Number, bool, Number*);
HOLDFAST_INSTANTIATE(float)
HOLDFAST_INSTANTIATE(double)
#undef HOLDFAST_INSTANTIATE

}  // namespace holdfast::softmax_rows
