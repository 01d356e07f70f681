// The k largest of each row, marked: what the ranks of an objective are made of, once a step for every sample.
#pragma once

#include <cstdint>

namespace holdfast::train::top_rows {

struct Shape {
  std::int64_t rows = 0, width = 0;
};

// marks = `inside` at the k largest of each row's magnitudes and `outside` elsewhere; 1 <= k <= width, magnitudes >= 0. Of equal
// ones the first belong. A selection that moves elements spends its time on branches that nobody can guess; this one counts.
template <class Number>
void mark(Shape shape, std::int64_t k, const Number* magnitudes, Number inside, Number outside, Number* marks);

}  // namespace holdfast::train::top_rows
