// chain_gradient.h on a GPU: two kernels for a map and its pullback, where autograd asks the GPU for some fifty operations.
#pragma once

#include "chain_gradient.h"

namespace holdfast::explain {

// Nothing where the model is no such chain, is too wide for a kernel, or the device has none.
std::optional<Explanation> explain_chain_rows(const ExplainTask& task, const GradientMap& map);
std::unique_ptr<Linearization> linearize_chain_rows(const ExplainTask& task, const GradientMap& map);

}  // namespace holdfast::explain
