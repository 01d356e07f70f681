#include "completeness.h"

#include "holdfast/core/torch.h"

namespace holdfast::explain {

at::Tensor explained_value(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity) {
  const at::Tensor rows = logits.detach().to(at::kDouble).expand({targets.size(0), -1});
  if (rows.size(1) == 1) return rows.squeeze(1);  // a value is explained itself
  const at::Tensor values = quantity == ExplainedQuantity::kLogit ? rows : at::log_softmax(rows, 1);
  const at::Tensor own = values.gather(1, targets.unsqueeze(1)).squeeze(1);
  if (quantity == ExplainedQuantity::kProbability) return own.exp();
  return quantity == ExplainedQuantity::kLogit ? own : -own;
}

at::Tensor completeness_delta(const Explanation& explanation, const at::Tensor& baseline_logits, const at::Tensor& targets,
                              ExplainedQuantity quantity) {
  const at::Tensor sum = explanation.maps.to(at::kDouble).flatten(1).sum(1) * explanation.log_scale.to(at::kDouble).exp();
  return sum - explained_value(explanation.logits, targets, quantity) + explained_value(baseline_logits, targets, quantity);
}

}  // namespace holdfast::explain
