// Gives a network fresh weights.
#pragma once

#include <cstdint>

#include "holdfast/model/network.h"

namespace holdfast::model {

// Fills every weight and bias of linear and convolution layers uniformly in +-1/sqrt(fan-in), PyTorch's default (Kaiming uniform
// with a = sqrt(5)). Each tensor has its own random stream, (seed, its name): values depend on nothing else. Batch
// normalisation starts as the identity.
void initialise(Network& network, std::uint64_t seed);

}  // namespace holdfast::model
