// Points and weights on [0, 1] that stand in for an integral.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::explain {

struct Quadrature {
  std::vector<double> points;   // ascending
  std::vector<double> weights;  // sum 1
};

//     right      k/m, k = 1..m           weights 1/m
//     left       k/m, k = 0..m-1
//     middle     (k - 1/2)/m
//     trapezoid  k/(m-1), k = 0..m-1     weights 1/(m-1), half at both ends
//     gauss      roots of the Legendre polynomial of degree m; exact for polynomials of degree 2m-1
// `steps` is the number of points. Throws kUsage for a trapezoid of one.
Quadrature quadrature(const std::string& rule, std::int64_t steps);

}  // namespace holdfast::explain
