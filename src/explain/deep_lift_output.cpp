#include "deep_lift_output.h"

#include <cmath>
#include <limits>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {
namespace {

// log((exp(a) - exp(b)) / (a - b)) = (a + b) / 2 + log(sinh(t) / t), t = |a - b| / 2, without overflow and smooth at a = b.
at::Tensor log_of_logarithmic_mean(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor t = (a - b).abs() / 2;
  // sinh(t) / t = 1 + t^2/6 + t^4/120 + ...: below the fourth root of the rounding two terms of its logarithm are exact.
  const double near = std::pow(std::numeric_limits<double>::epsilon(), 0.25);
  const at::Tensor is_near = t < (a.scalar_type() == at::kDouble ? near : 0.02);
  const at::Tensor far = at::where(is_near, at::ones_like(t), t);
  const at::Tensor squared = at::where(is_near, t, at::zeros_like(t)).square();
  const at::Tensor series = squared / 6 - squared.square() / 180;
  const at::Tensor closed = far + at::log1p(-(-2 * far).exp()) - (2 * far).log();
  return (a + b) / 2 + at::where(is_near, series, closed);
}

at::Tensor log_probability(const at::Tensor& logits, const at::Tensor& column) {
  return at::log_softmax(logits, 1).gather(1, column);
}

}  // namespace

LogitCotangent rescaled_cotangent(const at::Tensor& logits, const at::Tensor& reference, const at::Tensor& targets,
                                  ExplainedQuantity quantity) {
  if (quantity == ExplainedQuantity::kLogit || logits.size(1) == 1) return logit_cotangent(logits, targets, quantity);
  const at::Tensor column = targets.unsqueeze(1);
  const at::Tensor base = reference.expand_as(logits);
  const at::Tensor is_target = at::zeros_like(logits, at::kBool).scatter_(1, column, true);
  const at::Tensor log_p = log_probability(logits, column), log_p0 = log_probability(base, column);
  const at::Tensor log_means = log_of_logarithmic_mean(logits - logits.gather(1, column), base - base.gather(1, column));

  const bool probability = quantity == ExplainedQuantity::kProbability;
  const at::Tensor log_factor = probability ? log_p + log_p0 : -log_of_logarithmic_mean(-log_p, -log_p0);
  const at::Tensor log_pull = (log_means + log_factor).masked_fill(is_target, -std::numeric_limits<double>::infinity());
  const at::Tensor log_scale = log_pull.detach().amax(1, /*keepdim=*/true);
  const at::Tensor pull = (log_pull - log_scale).exp();  // of the cross-entropy
  const at::Tensor balanced = pull - is_target * pull.sum(1, /*keepdim=*/true);
  return {probability ? -balanced : balanced, log_scale.squeeze(1)};
}

}  // namespace holdfast::explain
