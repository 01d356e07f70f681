#include "palette.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace holdfast::report {
namespace {

Colour interpolate(std::span<const Colour> stops, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const double weight = place - static_cast<double>(below);
  Colour colour{};
  for (std::size_t i = 0; i < 3; ++i) {
    colour[i] = static_cast<std::uint8_t>(std::lround((1 - weight) * stops[below][i] + weight * stops[below + 1][i]));
  }
  return colour;
}

}  // namespace

Colour sequential(double share) {
  static constexpr std::array<Colour, 6> kStops{
      {{8, 8, 26}, {60, 20, 90}, {138, 38, 100}, {212, 72, 66}, {249, 149, 41}, {252, 240, 166}}};
  return interpolate(kStops, share);
}

Colour diverging(double share) {
  static constexpr std::array<Colour, 5> kStops{
      {{24, 78, 158}, {122, 174, 218}, {247, 247, 247}, {235, 140, 110}, {170, 30, 40}}};
  return interpolate(kStops, (share + 1) / 2);
}

}  // namespace holdfast::report
