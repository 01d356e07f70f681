// What an objective about gaps makes of rows of logits z, in plain loops: a dozen tensor operations on a few logits cost as much
// as the network. y the label, c the class that is explained, p = softmax(z), u a direction in which the logits move:
//     ce = -log p_y     q = d f / dz, f the probability p_c or -log p_c     gap = q . u
#pragma once

#include <cstdint>

namespace holdfast::train::gap_rows {

struct Shape {
  std::int64_t rows = 0, classes = 0;
  bool probability = true;  // f is p_c
};

// Fills p and q [rows, classes] and ce [rows].
template <class Number>
void forward(Shape shape, const Number* logits, const std::int64_t* labels, const std::int64_t* explained, Number* p, Number* q,
             Number* ce);

// by_logits [rows, classes]: of sum(ce_weights * ce + gap_weights * gap). With v = u - u_c and m = p . v,
//     d gap / dz = p (v - m)                      f = -log p_c
//     d gap / dz = -(q m + p_c p (v - m))         f = p_c
template <class Number>
void backward(Shape shape, const std::int64_t* labels, const std::int64_t* explained, const Number* p, const Number* q,
              const Number* u, const Number* ce_weights, const Number* gap_weights, Number* by_logits);

}  // namespace holdfast::train::gap_rows
