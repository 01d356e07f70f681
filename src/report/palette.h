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

// As in web/src/style.css: told apart by people with any kind of colour blindness (web/test).
inline constexpr Colour kKept{0, 158, 115};
inline constexpr Colour kLost{196, 71, 10};
inline constexpr Colour kNew{0, 114, 178};
inline constexpr Colour kMarked{255, 196, 0};

}  // namespace holdfast::report
