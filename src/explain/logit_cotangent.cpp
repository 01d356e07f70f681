#include "holdfast/explain/logit_cotangent.h"

#include <limits>

#include "fused_cotangent.h"
#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {

ExplainedQuantity parse_explained_quantity(const std::string& text) {
  if (text == "probability") return ExplainedQuantity::kProbability;
  if (text == "logit") return ExplainedQuantity::kLogit;
  HOLDFAST_CHECK(text == "ce");
  return ExplainedQuantity::kCrossEntropy;
}

LogitCotangent composed_logit_cotangent(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity) {
  const at::Tensor column = targets.unsqueeze(1);
  const at::Tensor is_target = at::zeros_like(logits, at::kBool).scatter_(1, column, true);
  if (quantity == ExplainedQuantity::kLogit)
    return {is_target.to(logits.scalar_type()), at::zeros({logits.size(0)}, logits.options().requires_grad(false))};

  const at::Tensor log_p = at::log_softmax(logits, 1);
  const at::Tensor log_others = log_p.masked_fill(is_target, -std::numeric_limits<double>::infinity());
  const at::Tensor log_m = log_others.detach().amax(1, /*keepdim=*/true);
  const at::Tensor ratios = (log_others - log_m).exp();
  const at::Tensor pull = ratios - is_target * ratios.sum(1, /*keepdim=*/true);  // of the cross-entropy
  if (quantity == ExplainedQuantity::kCrossEntropy) return {pull, log_m.squeeze(1)};

  const at::Tensor log_p_c = log_p.gather(1, column);
  const at::Tensor log_p_c_here = log_p_c.detach();
  return {-(log_p_c - log_p_c_here).exp() * pull, (log_m + log_p_c_here).squeeze(1)};
}

LogitCotangent logit_cotangent(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity) {
  if (logits.size(1) == 1) quantity = ExplainedQuantity::kLogit;
  const bool fits = logits.is_cpu() && (logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble);
  if (!fits || quantity == ExplainedQuantity::kLogit) return composed_logit_cotangent(logits, targets, quantity);
  return fused_logit_cotangent(logits, targets, quantity);
}

}  // namespace holdfast::explain
