// A network as the chain that cells are searched in.
#pragma once

#include <optional>
#include <string>

#include "cell_problem.h"
#include "holdfast/core/stages.h"
#include "holdfast/model/model.h"

namespace holdfast::attack::exact {

// Why a network is none, as a phrase: "tanh at node 'act'"; nothing when it is one.
std::optional<std::string> what_prevents(const Network& network);

// what_prevents(network) must be nothing.
Chain read_chain(const Network& network);

}  // namespace holdfast::attack::exact
