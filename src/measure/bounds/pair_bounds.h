// How far the gaps between features can move, from the derivatives of a class's probability or margin.
//
// With I the gradient at x, s its signs, H its Jacobian over a ball, and x' at distance d from x in it, for either sign t
//     |I(x')_i| - |I(x')_j|  >=  min over t of  s_i I_i - t I_j - d max ||s_i H_i - t H_j||_2
// because |a| >= s a and |a| is a or -a. t = s_j is the gap h = |I_i| - |I_j| and the term of the literature, which holds as long
// as no sign changes; t = -s_j covers that they do.
#pragma once

#include <ATen/core/Tensor.h>

#include "../pair_choice.h"
#include "ball_bounds.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure {

// One entry for each pair of each sample, [B, above, below].
struct PairTerms {
  at::Tensor gap;       // h = |I_i| - |I_j|
  at::Tensor sum;       // |I_i| + |I_j|
  at::Tensor together;  // max ||s_i H_i - s_j H_j||_2
  at::Tensor apart;     // max ||s_i H_i + s_j H_j||_2
  at::Tensor rows;      // max ||H_i||_2 + max ||H_j||_2
};

// Positions of the features of the pairs in each sample's map, [B, above] and [B, below] int64. Features are ranked by
// |gradient| [B, n], ties to the lower index.
struct RankedPairs {
  at::Tensor above, below;
};
RankedPairs ranked_pairs(const PairChoice& choice, const at::Tensor& gradient);

// pair_lower_bounds() of margin_bounds.h for these pairs alone, [B, above, below]; `rows` [units, n], `middle` and `half` [B,
// units], `signs` [B, n].
at::Tensor interval_gaps(const RankedPairs& pairs, const at::Tensor& rows, const at::Tensor& middle, const at::Tensor& half,
                         const at::Tensor& signs);

// `gradient` [B, n] at x; `hessian` [B, n, n] over the ball, or at x with radius 0.
PairTerms pair_terms(const RankedPairs& pairs, const at::Tensor& gradient, const Enclosure& hessian);

// What rounding may do to the gaps of pairs, [B, above, below], from what it may do to each feature, `errors` [B, n]. `sizes` [B,
// n]: how large the gradient is; `projected`: the schema whose groups' means are taken out, which adds their errors, or null.
at::Tensor gap_errors(const at::Tensor& errors, const at::Tensor& sizes, const RankedPairs& pairs, const Schema* projected,
                      double unit);

// The gradient's part that valid rows of one-hot groups can feel, as saliency projects it; bounds stay bounds.
at::Tensor projected_gradient(const at::Tensor& gradient, const Schema& schema);
Enclosure projected_hessian(const Enclosure& hessian, const Schema& schema);

}  // namespace holdfast::measure
