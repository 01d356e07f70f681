// Descent of the share of a map that lies inside a mask, or its ascent.
#pragma once

#include <memory>

#include "walk.h"

namespace holdfast::attack {

//     share = sum_{i in mask} |I_i| / sum_i |I_i|
// of the map at the present point, with its present signs; |I_i| of a pixel is the sum over its channels. `mask` has the shape of
// the maps, 1 inside and 0 outside. The maps' scale does not matter. Ascends where `raise` is set.
std::unique_ptr<Descent> share_inside(at::Tensor mask, bool raise);

}  // namespace holdfast::attack
