// What rounding may do to a sum of products: |computed - exact| <= g_m times the sum of the |products|, whatever their order,
// with g_m = m u / (1 - m u), m the longest chain of additions and multiplications and u the unit roundoff.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace holdfast::measure {

// Operations on a way beside its sums: factors, activations, the cotangent, the scale of a map.
inline constexpr std::int64_t kOperationsBeside = 16, kOperationsALayer = 4;

// The unit roundoff of maps of this type, and of the double precision that bounds are computed in: 2^-24 for float32, more where
// the type has fewer digits.
double unit_roundoff(at::ScalarType type);

// g_m.
double rounding_of(std::int64_t operations, double unit);

}  // namespace holdfast::measure
