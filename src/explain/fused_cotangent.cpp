#include "fused_cotangent.h"

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

}  // namespace

LogitCotangent fused_logit_cotangent(const at::Tensor& logits, const at::Tensor& targets, ExplainedQuantity quantity) {
  const at::Tensor classes = targets.contiguous();
  const CotangentParts parts = compute(logits.detach().contiguous(), classes, quantity);
  if (!logits.requires_grad() || !at::GradMode::is_enabled()) return {parts.value, parts.log_scale};
  return {Cotangent::apply(logits, classes, parts, quantity), parts.log_scale};
}

}  // namespace holdfast::explain
