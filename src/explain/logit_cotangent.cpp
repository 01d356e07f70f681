#include "holdfast/explain/logit_cotangent.h"

#include <limits>

#include <torch/csrc/autograd/custom_function.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "softmax_rows.h"

namespace holdfast::explain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CotangentParts {
  at::Tensor value, p, r, log_scale;
};

softmax_rows::Shape shape_of(const at::Tensor& logits) {
  return {logits.size(0), logits.size(1)};
}

CotangentParts compute(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity) {
  const bool probability = quantity == ExplainedQuantity::kProbability;
  CotangentParts parts{at::empty_like(logits), at::empty_like(logits), at::empty_like(logits),
                       at::empty({logits.size(0)}, logits.options())};
  at::Tensor log_p_c = at::empty_like(parts.log_scale);
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "logit_cotangent", [&] {
    const std::int64_t* classes = targets.data_ptr<std::int64_t>();
    softmax_rows::forward(shape_of(logits), logits.data_ptr<scalar_t>(), classes, parts.p.data_ptr<scalar_t>(),
                          parts.r.data_ptr<scalar_t>(), log_p_c.data_ptr<scalar_t>(), parts.log_scale.data_ptr<scalar_t>());
    softmax_rows::cotangent(shape_of(logits), classes, parts.r.data_ptr<scalar_t>(), scalar_t(probability ? 1 : -1),
                            parts.value.data_ptr<scalar_t>());
  });
  if (probability) parts.log_scale.add_(log_p_c);
  return parts;
}

// value as a function of the logits; what it was computed from is kept for the derivative.
class Cotangent : public torch::autograd::Function<Cotangent> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& targets,
                            const CotangentParts& parts, ExplainedQuantity quantity) {
    context->save_for_backward({logits, targets, parts.p, parts.r});
    context->saved_data["quantity"] = static_cast<std::int64_t>(quantity);
    return parts.value;
  }

  static variable_list backward(AutogradContext* context, const variable_list& weights) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &targets = saved[1], &p = saved[2], &r = saved[3];
    const auto quantity = static_cast<ExplainedQuantity>(context->saved_data["quantity"].toInt());
    if (at::GradMode::is_enabled()) {
      // Somebody will differentiate the derivative: it must be made of operations that autograd knows.
      const at::Tensor value = composed_logit_cotangent(logits, targets, quantity).value;
      return {
          torch::autograd::grad({value}, {logits}, {weights[0]}, /*retain_graph=*/true, /*create_graph=*/true)[0], {}, {}, {}};
    }
    const bool probability = quantity == ExplainedQuantity::kProbability;
    const at::Tensor pulled = weights[0].contiguous();
    at::Tensor gradient = at::empty_like(p);
    AT_DISPATCH_FLOATING_TYPES(p.scalar_type(), "logit_cotangent_backward", [&] {
      softmax_rows::backward(shape_of(p), targets.data_ptr<std::int64_t>(), p.data_ptr<scalar_t>(), r.data_ptr<scalar_t>(),
                             pulled.data_ptr<scalar_t>(), scalar_t(probability ? 1 : -1), probability,
                             gradient.data_ptr<scalar_t>());
    });
    return {gradient, {}, {}, {}};
  }
};

// logit_cotangent of a probability or cross-entropy on the CPU, in plain loops: on small networks a dozen tensor operations on
// a few logits cost as much as the network. The first derivative is one loop too; higher ones are composed.
LogitCotangent fused_logit_cotangent(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity) {
  const at::Tensor classes = targets.contiguous();
  const CotangentParts parts = compute(logits.detach().contiguous(), classes, quantity);
  if (!logits.requires_grad() || !at::GradMode::is_enabled()) return {parts.value, parts.log_scale};
  return {Cotangent::apply(logits, classes, parts, quantity), parts.log_scale};
}

}  // namespace

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
