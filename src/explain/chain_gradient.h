// The gradient of the explained quantity and its pullback without autograd, for networks that are chains of linear layers
// (linear_chain.h). On tables autograd's bookkeeping and its passes through memory take far longer than the arithmetic. What
// graph.h gives by autograd is the reference.
#pragma once

#include <memory>
#include <optional>

#include "holdfast/explain/explainer.h"
#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain {

struct GradientMap {
  ExplainedQuantity quantity;
  bool magnitudes = true;  // else with signs
  bool project = false;    // to the directions that valid rows of one-hot groups have
};

// Nothing where the model is no such chain: then the same is to be had by autograd.
std::optional<Explanation> explain_chain(const ExplainTask& task, const GradientMap& map);
std::unique_ptr<Linearization> linearize_chain(const ExplainTask& task, const GradientMap& map);

}  // namespace holdfast::explain
