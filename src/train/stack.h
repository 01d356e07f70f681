// Networks of one shape as one: linear layers with a matrix for each network (op::Linear).
#pragma once

#include <vector>

#include "holdfast/model/network.h"

namespace holdfast::train {

// Whether the network is a chain of what a stack can hold: linear layers, activations, preprocessing of vectors.
bool can_stack(const Network& network);

// Stacks networks that can_stack and differ in the values of their weights alone. A batch [M * B, n] has the samples of a network
// after those of the other.
Network stack(const std::vector<Network>& networks);

// Network `index` of a stack; its tensors are views of the stack's.
Network unstacked(const Network& stack, std::int64_t index);

}  // namespace holdfast::train
