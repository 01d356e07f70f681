// What maps should add up to: the explained quantity at the input less that at the baseline.
#pragma once

#include <ATen/core/Tensor.h>

#include "holdfast/explain/explainer.h"
#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain {

// [B] double: p_c, the logit or -log p_c.
at::Tensor explained_value(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity);

// Explanation::delta: sum(map) - (value at the input - value at the baseline), [B] double. `baseline_logits` has one row for each
// sample, or one for all.
at::Tensor completeness_delta(const Explanation& explanation, const at::Tensor& baseline_logits, const at::Tensor& targets,
                              ExplainedQuantity quantity);

}  // namespace holdfast::explain
