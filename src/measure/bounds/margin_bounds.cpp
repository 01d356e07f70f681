#include "holdfast/measure/margin_bounds.h"

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"
#include "rounding.h"

namespace holdfast::measure {
namespace {

using Kind = op::Activation::Kind;

constexpr double kLeastWidth = 1e-6;  // of a step's sigmoid: at radius 0 it would have no slope at all

bool has_rising_derivative(const op::Activation& activation) {
  return activation.kind == Kind::kRelu || activation.kind == Kind::kLeakyRelu || activation.kind == Kind::kSoftplus;
}

// 1 where z is positive, else 0; for autograd a sigmoid of the given width.
at::Tensor step(const at::Tensor& z, const at::Tensor& width) {
  const at::Tensor smooth = at::sigmoid(z / width);
  return (z > 0).to(z.scalar_type()) + (smooth - smooth.detach());
}

at::Tensor derivative(const op::Activation& activation, const at::Tensor& z, const at::Tensor& width) {
  switch (activation.kind) {
    case Kind::kRelu:
      return step(z, width);
    case Kind::kLeakyRelu:
      return activation.parameter + (1 - activation.parameter) * step(z, width);
    default:
      return at::sigmoid(z * activation.parameter);
  }
}

using Range = MarginChain::Range;

at::Tensor middle(const Range& range) {
  return (range.low + range.high) / 2;
}
at::Tensor half(const Range& range) {
  return (range.high - range.low) / 2;
}

// x' W for x' in a range, weight [M, in, out].
Range times(const Range& x, const at::Tensor& weight) {
  const at::Tensor center = at::matmul(middle(x), weight), reach = at::matmul(half(x), weight.abs());
  return {center - reach, center + reach};
}

// Scales a range by factors that are not negative.
Range times(const Range& x, const Range& factor) {
  return {at::minimum(x.low * factor.low, x.low * factor.high), at::maximum(x.high * factor.low, x.high * factor.high)};
}

// Gives weight and bias as [M, out, in] and [M, 1, out]; M is 1 for a single network.
at::Tensor stacked(const at::Tensor& weight) {
  return weight.dim() == 3 ? weight : weight.unsqueeze(0);
}

}  // namespace

std::optional<std::string> MarginChain::what_prevents(const Network& network) {
  if (const auto what = what_breaks_chain(network, has_rising_derivative)) return what;
  std::int64_t classes = 0;
  for (const Node& node : network.nodes()) {
    if (const auto* linear = std::get_if<op::Linear>(&node.operation)) classes = linear->weight.size(-2);
  }
  return classes == 2 ? std::nullopt : std::optional(fmt::format("{} classes in place of two", classes));
}

MarginChain::MarginChain(const Network& network) {
  at::Tensor scale, shift;  // of the preprocessing so far: x * scale + shift
  for (const Node& node : network.nodes()) {
    if (const auto* affine = std::get_if<op::Affine>(&node.operation)) {
      const at::Tensor own = affine->scale.flatten();
      scale = scale.defined() ? scale * own : own;
      shift = (shift.defined() ? shift * own : 0 * own) + affine->shift.flatten();
    } else if (const auto* linear = std::get_if<op::Linear>(&node.operation)) {
      Layer layer{.weight = stacked(linear->weight), .bias = {}, .bias_size = {}, .activation = {}};
      const std::int64_t networks = layer.weight.size(0), out = layer.weight.size(1);
      layer.bias = linear->bias.defined() ? linear->bias.reshape({networks, 1, out})
                                          : at::zeros({networks, 1, out}, layer.weight.options());
      layer.bias_size = layer.bias.abs();
      if (layers_.empty() && scale.defined()) {
        layer.bias_size = layer.bias_size + (layer.weight * shift).abs().sum(2).unsqueeze(1);
        layer.bias = layer.bias + (layer.weight * shift).sum(2).unsqueeze(1);
        layer.weight = layer.weight * scale;
      }
      layers_.push_back(std::move(layer));
    } else if (const auto* activation = std::get_if<op::Activation>(&node.operation)) {
      layers_.back().activation = *activation;
    }
  }
  HOLDFAST_CHECK(!layers_.empty() && !layers_.back().activation);
}

// Pre-activations at x and over the ball, and what the activations' derivatives are there.
MarginChain::Slopes MarginChain::slopes(const at::Tensor& inputs, double radius, double unit, const at::Tensor& moving) const {
  const auto affine = [](const Layer& layer, const at::Tensor& x) {
    return at::baddbmm(layer.bias, x, layer.weight.transpose(1, 2));
  };
  const at::Tensor& rows = layers_.front().weight;
  const at::Tensor reach = (radius * (moving.defined() ? rows * moving : rows).norm(2, 2)).unsqueeze(1);  // [M, 1, units]
  // Sums of `in` products and a bias, computed with rounding.
  const auto widened = [&](const Range& range, const Layer& layer, const at::Tensor& in) {
    if (unit == 0) return range;
    const double relative = rounding_of(layer.weight.size(2) + kOperationsALayer, unit);
    const at::Tensor error = relative * at::baddbmm(layer.bias_size, in, layer.weight.abs().transpose(1, 2));
    return Range{range.low - error, range.high + error};
  };
  at::Tensor z = affine(layers_.front(), inputs);
  Range ball = widened({z - reach, z + reach}, layers_.front(), inputs.abs() + radius);
  Slopes result;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    const op::Activation& activation = *layers_[i].activation;
    const at::Tensor reached = half(ball).clamp_min(kLeastWidth), width = reached.detach();
    result.steadiness.push_back(z / reached);
    result.exact.push_back(derivative(activation, z, width));
    result.bounds.push_back({derivative(activation, ball.low, width), derivative(activation, ball.high, width)});
    const Layer& next = layers_[i + 1];
    z = affine(next, activate(activation, z));
    const Range values{activate(activation, ball.low), activate(activation, ball.high)};
    ball = times(values, next.weight.transpose(1, 2));
    ball = widened({ball.low + next.bias, ball.high + next.bias}, next, at::maximum(values.low.abs(), values.high.abs()));
  }
  return result;
}

std::int64_t MarginChain::operations() const {
  std::int64_t count = kOperationsBeside;
  for (const Layer& layer : layers_) count += layer.weight.size(1) + kOperationsALayer;
  return count;
}

MarginBounds MarginChain::bounds(const at::Tensor& inputs, double radius, double unit, const at::Tensor& moving) const {
  const Slopes slope = slopes(inputs, radius, unit, moving);
  const at::Tensor& rows = layers_.front().weight;
  // Back from z_1 - z_0 to the units of the first layer.
  const at::Tensor margin = at::tensor({-1.0, 1.0}, at::kDouble).to(inputs.options().requires_grad(false)).view({1, 1, 2});
  at::Tensor exact = margin.expand({inputs.size(0), inputs.size(1), 2});
  at::Tensor ceiling = margin.abs().expand({inputs.size(0), 1, 2});
  Range bounded{exact, exact};
  at::Tensor products = margin.abs().expand({inputs.size(0), inputs.size(1), 2});  // both classes' logits are differentiated
  for (std::size_t i = layers_.size() - 1; i > 0; --i) {
    const at::Tensor& weight = layers_[i].weight;
    ceiling = i + 1 == layers_.size() ? at::matmul(margin, weight).abs() : at::matmul(ceiling, weight.abs());
    exact = at::matmul(exact, weight) * slope.exact[i - 1];
    bounded = times(times(bounded, weight), slope.bounds[i - 1]);
    if (unit > 0) products = at::matmul(products, weight.abs()) * slope.bounds[i - 1].high;  // slopes rise and are not negative
  }
  return {.rows = rows,
          .middle = middle(bounded),
          .half = half(bounded),
          .gradient = at::matmul(exact, rows),
          .ceiling = ceiling.squeeze(1),
          .steadiness = slope.steadiness.empty() ? at::zeros({inputs.size(0), inputs.size(1), 0}, inputs.options())
                                                 : at::cat(slope.steadiness, 2),
          .products = unit > 0 ? at::matmul(products, rows.abs()) : at::Tensor()};
}

at::Tensor pair_lower_bounds(const PairFactors& factors) {
  const at::Tensor& rows = factors.rows;
  const at::Tensor middle = at::matmul(factors.middle, rows);
  const auto bound = [&](double t) {
    const at::Tensor apart = (rows.unsqueeze(3) - t * rows.unsqueeze(2)).abs().flatten(2);  // [M, units, n n]
    const at::Tensor moved = at::matmul(factors.half, apart).unflatten(2, {rows.size(2), rows.size(2)});
    return factors.signs.unsqueeze(3) * (middle.unsqueeze(3) - t * middle.unsqueeze(2)) - moved;
  };
  return at::minimum(bound(1), bound(-1));
}

}  // namespace holdfast::measure
