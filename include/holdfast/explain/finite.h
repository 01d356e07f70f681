// Numbers that are none are found at the stage that made them.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

// Throws for the first sample, by its id, whose logits (kInput: the model's doing) or map (kFailure: the explainer's) are not
// finite.
void check_finite(const Explanation& explanation, const at::Tensor& sample_ids, const Model& model, const Explainer& explainer);

}  // namespace holdfast::explain
