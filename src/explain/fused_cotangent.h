#pragma once

#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain {

// logit_cotangent of a probability or cross-entropy on the CPU, in plain loops: on small networks a dozen tensor operations on
// a few logits cost as much as the network. The first derivative is one loop too; higher ones are composed.
LogitCotangent fused_logit_cotangent(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity);

}  // namespace holdfast::explain
