// Rows of tables whose categories take other levels.
#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/core/rng.h"
#include "rows.h"

namespace holdfast::attack::rows {

// ThreatModel::switched: points, which start as the clean rows, take the levels of `wanted`.
template <class Number>
void take_levels(const Switches& switches, Shape shape, const Number* wanted, const Number* clean, Number* points);

// Puts a random number of groups, 0 to as many as may switch, at a random other level, in place.
void draw_levels(const Switches& switches, RandomStream& stream, double* point);

}  // namespace holdfast::attack::rows
