// The shortest vector in the convex hull of a few vectors, by their inner products alone.
//     minimise  || sum_q a_q g_q ||_2,   a_q >= 0,  sum_q a_q = 1
// Its negative is a direction that goes down for all of them at once, or zero where there is none (Désidéri, "Multiple-gradient
// descent algorithm", 2012). Solved exactly by Wolfe's active-set method ("Finding the nearest point in a polytope", 1976).
#pragma once

#include <span>
#include <vector>

namespace holdfast::attack {

// `products`: m x m, element q * m + r the inner product of vectors q and r. Gives a_0 .. a_{m-1}. Finite products only.
std::vector<double> min_norm_weights(std::span<const double> products, std::size_t m);

}  // namespace holdfast::attack
