// Published weights: DATA/models/NAME.f32, little-endian float32 tensors end to end, and NAME.csv with name, shape, offset and
// count of each.
#pragma once

#include <string>
#include <vector>

#include "holdfast/model/network.h"

namespace holdfast::model {

// Throws kInput when a file is missing or the two do not fit together.
std::vector<Parameter> read_published(const std::string& name);

}  // namespace holdfast::model
