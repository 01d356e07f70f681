// Colours of heat maps.
#pragma once

#include <array>
#include <cstdint>

namespace holdfast::report {

using Colour = std::array<std::uint8_t, 3>;

// 0 dark to 1 bright, in even steps of lightness: magnitudes.
Colour sequential(double share);
// -1 blue, 0 white, +1 red: signed maps.
Colour diverging(double share);

inline constexpr Colour kKept{47, 158, 100};
inline constexpr Colour kLost{214, 69, 61};
inline constexpr Colour kNew{31, 111, 235};
inline constexpr Colour kMarked{255, 196, 0};

}  // namespace holdfast::report
