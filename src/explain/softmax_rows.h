// The arithmetic of logit_cotangent.h on rows of logits, without torch: one pass forward, one back.
#pragma once

#include <cstdint>

namespace holdfast::explain::softmax_rows {

struct Shape {
  std::int64_t rows = 0, classes = 0;
};

// For each row with target c: p = softmax, r_j = p_j / max_{j != c} p_j (0 at c), and the logarithms of p_c and of that maximum.
template <class Number>
void forward(Shape shape, const Number* logits, const std::int64_t* targets, Number* p, Number* r, Number* log_p_c,
             Number* log_m);

// sign * q (sum_j r_j at c, -r_j elsewhere), q = 1 here.
template <class Number>
void cotangent(Shape shape, const std::int64_t* targets, const Number* r, Number sign, Number* value);

// Gradient by the logits of sum(weights * cotangent). With a_j = weights_c - weights_j and A = sum_j a_j r_j it is
//     sign (a_l r_l - p_l A), and sign (A at c, -p_l A) more where q is p_c / const(p_c) and not 1
template <class Number>
void backward(Shape shape, const std::int64_t* targets, const Number* p, const Number* r, const Number* weights, Number sign,
              bool with_q, Number* gradient);

}  // namespace holdfast::explain::softmax_rows
