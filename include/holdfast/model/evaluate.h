// One operation at a time, for those who walk over a network's nodes themselves.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/model/network.h"

namespace holdfast::model {

// What the operation makes of the values it reads, in evaluation mode, as Network::run computes it.
at::Tensor evaluate_operation(const Operation& operation, const std::vector<at::Tensor>& operands);

}  // namespace holdfast::model
