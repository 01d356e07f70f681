#include "gap_rows.h"

#include <algorithm>
#include <cmath>

namespace holdfast::train::gap_rows {

template <class Number>
void forward(Shape shape, const Number* logits, const std::int64_t* labels, const std::int64_t* explained, Number* p, Number* q,
             Number* ce) {
  const std::int64_t classes = shape.classes;
  for (std::int64_t row = 0; row < shape.rows; ++row, logits += classes, p += classes, q += classes) {
    const std::int64_t c = explained[row];
    const Number top = *std::max_element(logits, logits + classes);
    Number total = 0;
    for (std::int64_t j = 0; j < classes; ++j) total += p[j] = std::exp(logits[j] - top);
    ce[row] = std::log(total) - (logits[labels[row]] - top);
    // 1 - p_c as a sum: where p_c is nearly 1 the difference would be rounding.
    Number others = 0;
    for (std::int64_t j = 0; j < classes; ++j) {
      p[j] /= total;
      if (j != c) others += p[j];
    }
    const Number scale = shape.probability ? p[c] : Number(-1);
    for (std::int64_t j = 0; j < classes; ++j) q[j] = -scale * p[j];
    q[c] = scale * others;
  }
}

template <class Number>
void backward(Shape shape, const std::int64_t* labels, const std::int64_t* explained, const Number* p, const Number* q,
              const Number* u, const Number* ce_weights, const Number* gap_weights, Number* by_logits) {
  const std::int64_t classes = shape.classes;
  for (std::int64_t row = 0; row < shape.rows; ++row, p += classes, q += classes, u += classes, by_logits += classes) {
    const std::int64_t c = explained[row];
    Number m = 0;
    for (std::int64_t j = 0; j < classes; ++j) m += p[j] * (u[j] - u[c]);
    for (std::int64_t j = 0; j < classes; ++j) {
      const Number spread = p[j] * (u[j] - u[c] - m);
      const Number gap = shape.probability ? -(q[j] * m + p[c] * spread) : spread;
      by_logits[j] = ce_weights[row] * p[j] + gap_weights[row] * gap;
    }
    by_logits[labels[row]] -= ce_weights[row];
  }
}

#define HOLDFAST_GAP_ROWS(Number)                                                                                      \
  template void forward(Shape, const Number*, const std::int64_t*, const std::int64_t*, Number*, Number*, Number*);    \
  template void backward(Shape, const std::int64_t*, const std::int64_t*, const Number*, const Number*, const Number*, \
                         const Number*, const Number*, Number*);
HOLDFAST_GAP_ROWS(float)
HOLDFAST_GAP_ROWS(double)
#undef HOLDFAST_GAP_ROWS

}  // namespace holdfast::train::gap_rows
