// Whether a network is piecewise linear: then its Hessians have closed forms, and its ranking moves at kinks alone.
#pragma once

#include <optional>
#include <string>

#include "holdfast/core/stages.h"
#include "holdfast/model/network.h"

namespace holdfast::measure {

// What makes the network other than piecewise linear, as a phrase: "softplus at node 'act'"; nothing when it is piecewise linear.
std::optional<std::string> what_bends(const Network& network);

}  // namespace holdfast::measure
