#include "softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace holdfast::explain::softmax_rows {

namespace {

// Most exponents here are differences to the largest, and one of them is 0.
template <class Number>
Number exponential(Number x) {
  return x == 0 ? Number(1) : std::exp(x);
}

}  // namespace

template <class Number>
void forward(Shape shape, const Number* logits, const std::int64_t* targets, Number* p, Number* r, Number* log_p_c,
             Number* log_m) {
  const std::int64_t classes = shape.classes;
  for (std::int64_t row = 0; row < shape.rows; ++row, logits += classes, p += classes, r += classes) {
    const std::int64_t c = targets[row];
    Number highest_other = -std::numeric_limits<Number>::infinity();
    for (std::int64_t j = 0; j < classes; ++j) {
      if (j != c) highest_other = std::max(highest_other, logits[j]);
    }
    Number others = 0;
    for (std::int64_t j = 0; j < classes; ++j) {
      r[j] = j == c ? Number(0) : exponential(logits[j] - highest_other);
      others += r[j];
    }
    // Everything relative to the largest logit: `own` for the target, `scale` times r_j for the others.
    const Number top = std::max(highest_other, logits[c]);
    const Number own = exponential(logits[c] - top), scale = exponential(highest_other - top);
    const Number total = own + scale * others;
    for (std::int64_t j = 0; j < classes; ++j) p[j] = (j == c ? own : scale * r[j]) / total;
    const Number log_total = top + std::log(total);
    log_p_c[row] = logits[c] - log_total;
    log_m[row] = highest_other - log_total;
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

}  // namespace holdfast::explain::softmax_rows
