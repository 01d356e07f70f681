#include "lrp_rules.h"

#include <optional>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/evaluate.h"

namespace holdfast::explain {
namespace {

// The layer with other weights and no bias.
Operation with_weight(const Operation& operation, const at::Tensor& weight) {
  Operation layer = operation;
  if (auto* conv = std::get_if<op::Conv2d>(&layer)) {
    conv->weight = weight;
    conv->bias = at::Tensor();
  } else {
    auto& linear = std::get<op::Linear>(layer);
    linear.weight = weight;
    linear.bias = at::Tensor();
  }
  return layer;
}

at::Tensor weight_of(const Operation& operation) {
  const auto* conv = std::get_if<op::Conv2d>(&operation);
  return conv != nullptr ? conv->weight : std::get<op::Linear>(operation).weight;
}

// The bias that goes with the layer's output; zero where there is none.
at::Tensor bias_of(const Operation& operation, const at::Tensor& output) {
  const auto* conv = std::get_if<op::Conv2d>(&operation);
  const at::Tensor bias = conv != nullptr ? conv->bias : std::get<op::Linear>(operation).bias;
  if (!bias.defined()) return at::zeros({1}, output.options().requires_grad(false));
  return conv != nullptr ? bias.view({-1, 1, 1}) : bias;
}

at::Tensor forward(const Operation& layer, const at::Tensor& a) {
  return evaluate_operation(layer, {a});
}

at::Tensor backward(const Operation& layer, const at::Tensor& a, const at::Tensor& s) {
  return LocalGraph(layer, {a}).pull(s)[0];
}

// What the shift of a normalisation that stands alone adds to its output.
at::Tensor output_of_zero(const LayerStep& step) {
  return evaluate_operation(step.node().operation, {at::zeros_like(step.operand().slice(0, 0, 1))});
}

// s+ and s-: what z+ and z- hand down for each unit of theirs.
std::pair<at::Tensor, at::Tensor> shares(const LayerStep& step, const at::Tensor& z_plus, const at::Tensor& z_minus,
                                         const LrpRule& rule) {
  const at::Tensor& relevance = step.cotangent();
  if (rule.kind == LrpRule::Kind::kAlphaBeta) {
    return {rule.alpha * relevance / kept_from_zero(z_plus, rule.epsilon),
            (1 - rule.alpha) * relevance / kept_from_zero(z_minus, rule.epsilon)};
  }
  const at::Tensor up = step.value().detach() >= 0;  // with its bias, whether or not that has a share
  const at::Tensor favour_plus = at::where(up, 1 + rule.gamma, 1.0).to(relevance.scalar_type());
  const at::Tensor favour_minus = at::where(up, 1.0, 1 + rule.gamma).to(relevance.scalar_type());
  const at::Tensor s = relevance / kept_from_zero(favour_plus * z_plus + favour_minus * z_minus, rule.epsilon);
  return {favour_plus * s, favour_minus * s};
}

// Treats one sign of a layer's input, under the positive and under the negative weights.
struct Part {
  Part(const Operation& operation, const at::Tensor& a)
      : positive(with_weight(operation, weight_of(operation).clamp_min(0)), {a}),
        negative(with_weight(operation, weight_of(operation).clamp_max(0)), {a}) {}
  LocalGraph positive, negative;
};

// gamma and alphabeta, with a+ and a- the input's parts and ' for a transposed matrix:
//     R = a+ (w+' s+ + w-' s-)  +  a- (w-' s+ + w+' s-)
at::Tensor by_parts(const LayerStep& step, const LrpRule& rule) {
  const Operation& operation = step.node().operation;
  const at::Tensor a = step.operand(), is_below = a.detach() < 0;
  const at::Tensor zero = at::zeros({1}, a.options().requires_grad(false));
  const Part above(operation, at::where(is_below, zero, a));
  std::optional<Part> below;  // behind a rectifier nothing is negative, and half of the work would be for nothing
  if (is_below.any().item<bool>()) below.emplace(operation, at::where(is_below, a, zero));

  at::Tensor z_plus = above.positive.value(), z_minus = above.negative.value();
  if (below) {
    z_plus = z_plus + below->negative.value();
    z_minus = z_minus + below->positive.value();
  }
  if (rule.absorb_bias) {
    const at::Tensor bias = bias_of(operation, step.value());
    z_plus = z_plus + bias.clamp_min(0);
    z_minus = z_minus + bias.clamp_max(0);
  }
  const auto [s_plus, s_minus] = shares(step, z_plus, z_minus, rule);
  at::Tensor multipliers = above.positive.pull(s_plus)[0] + above.negative.pull(s_minus)[0];
  if (below) {
    multipliers = at::where(is_below, below->negative.pull(s_plus)[0] + below->positive.pull(s_minus)[0], multipliers);
  }
  return a * multipliers;
}

at::Tensor by_flat(const LayerStep& step, const LrpRule& rule) {
  const Operation flat = with_weight(step.node().operation, at::ones_like(weight_of(step.node().operation)));
  const at::Tensor seen = forward(flat, at::ones_like(step.operand().slice(0, 0, 1)));
  return backward(flat, step.operand(), step.cotangent() / kept_from_zero(seen, rule.epsilon));
}

at::Tensor by_box(const LayerStep& step, const LrpRule& rule, const at::Tensor& low, const at::Tensor& high) {
  HOLDFAST_CHECK(low.defined() && high.defined());
  const Operation& operation = step.node().operation;
  const at::Tensor weight = weight_of(operation), a = step.operand();
  const Operation all = with_weight(operation, weight);
  const Operation positive = with_weight(operation, weight.clamp_min(0)), negative = with_weight(operation, weight.clamp_max(0));
  const at::Tensor z = forward(all, a) - forward(positive, low) - forward(negative, high);
  const at::Tensor s = step.cotangent() / kept_from_zero(z, rule.epsilon);
  return a * backward(all, a, s) - low * backward(positive, a, s) - high * backward(negative, a, s);
}

}  // namespace

at::Tensor kept_from_zero(const at::Tensor& z, double epsilon) {
  return z + at::where(z.detach() >= 0, epsilon, -epsilon).to(z.scalar_type());
}

at::Tensor epsilon_multipliers(const LayerStep& step, const LrpRule& rule) {
  at::Tensor z = step.value();
  if (!rule.absorb_bias) z = z - output_of_zero(step);
  return step.pull(step.cotangent() / kept_from_zero(z, rule.epsilon))[0];
}

at::Tensor relevance_below(const LayerStep& step, const LrpRule& rule, const at::Tensor& low, const at::Tensor& high) {
  switch (rule.kind) {
    case LrpRule::Kind::kEpsilon:
      return step.operand() * epsilon_multipliers(step, rule);
    case LrpRule::Kind::kGamma:
    case LrpRule::Kind::kAlphaBeta:
      return by_parts(step, rule);
    case LrpRule::Kind::kFlat:
      return by_flat(step, rule);
    case LrpRule::Kind::kBox:
      return by_box(step, rule, low, high);
  }
  bug(__FILE__, __LINE__, "a known rule");
}

}  // namespace holdfast::explain
