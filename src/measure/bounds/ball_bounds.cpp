#include "ball_bounds.h"

#include <algorithm>

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"
#include "holdfast/model/evaluate.h"
#include "rounding.h"

namespace holdfast::measure {
namespace {

// Above the rounding of the sums, far below anything that matters.
constexpr double kSlack = 1e-10;

bool is_affine(const Operation& operation) {
  return is_one_of<op::Affine, op::ReverseChannels, op::Linear, op::Conv2d, op::BatchNorm, op::AvgPool2d, op::AdaptiveAvgPool2d,
                   op::Mean, op::Pad, op::Slice, op::Multiply, op::Flatten, op::Reshape, op::Dropout, op::SelectIndex,
                   op::Permute>(operation);
}

at::Tensor times_vector(const at::Tensor& matrix, const at::Tensor& vectors) {
  return at::matmul(matrix, vectors.unsqueeze(2)).squeeze(2);
}

// Radius of a product of two enclosures.
at::Tensor product_radius(const Enclosure& a, const Enclosure& b) {
  return a.center.abs() * b.radius + a.radius * b.center.abs() + a.radius * b.radius;
}

// Second derivatives of outputs that are weighted sums of functions of the rows of J: sum_m w_m J_m J_m^T, weights [B, out, m].
Enclosure weighted_squares(const Enclosure& weights, const Enclosure& slopes) {
  const auto squares = [](const at::Tensor& w, const at::Tensor& rows) {
    return at::matmul((w.unsqueeze(3) * rows.unsqueeze(1)).transpose(2, 3), rows.unsqueeze(1));
  };
  const at::Tensor inner = slopes.center.abs(), outer = inner + slopes.radius, size = weights.center.abs();
  return {squares(weights.center, slopes.center), squares(size + weights.radius, outer) - squares(size, inner)};
}

// W (f T), T [B, m, n, n].
Enclosure passed_on(const at::Tensor& weight, const Enclosure& slope, const Enclosure& second) {
  const auto mix = [&](const at::Tensor& w, const at::Tensor& t) {
    return at::matmul(w, t.flatten(2)).unflatten(2, {t.size(2), t.size(3)});
  };
  const Enclosure wide{slope.center.unsqueeze(2).unsqueeze(3), slope.radius.unsqueeze(2).unsqueeze(3)};
  return {mix(weight, wide.center * second.center), mix(weight.abs(), product_radius(wide, second))};
}

Enclosure plus(const Enclosure& a, const Enclosure& b) {
  return {a.center + b.center, a.radius + b.radius};
}

// How the output depends on the last values u: its first derivatives q [B, m] and second ones Q [B, m, m].
struct Head {
  Enclosure first, second;
};

Enclosure between_ends(const at::Tensor& low, const at::Tensor& high) {
  return {(low + high) / 2, (high - low) / 2};
}

// Two classes: u is the margin of the class and p = sigmoid(u).
Head sigmoid_head(const at::Tensor& low, const at::Tensor& high) {
  const op::Activation sigmoid{op::Activation::Kind::kSigmoid, 0};
  const Enclosure second = activation_range(sigmoid, 2, low, high);
  return {activation_range(sigmoid, 1, low, high), {second.center.unsqueeze(2), second.radius.unsqueeze(2)}};
}

// More classes: u_j = z_j - z_c for the others, p_c = 1 / (1 + sum exp u_j), q_j = -p_c p_j, Q_jk = p_c p_j (2 p_k - [j = k]).
Head softmax_head(const at::Tensor& low, const at::Tensor& high) {
  const at::Tensor e_low = low.exp(), e_high = high.exp();
  const at::Tensor sum_low = 1 + e_low.sum(1, true), sum_high = 1 + e_high.sum(1, true);
  const at::Tensor p_low = e_low / (sum_high - e_high + e_low), p_high = e_high / (sum_low - e_low + e_high);
  const at::Tensor pair_low = p_low / sum_high, pair_high = (p_high / sum_low).clamp_max(0.25);  // p_c p_j
  const at::Tensor one = at::eye(low.size(1), low.options());
  const at::Tensor factor_low = 2 * p_low.unsqueeze(1) - one, factor_high = 2 * p_high.unsqueeze(1) - one;
  const at::Tensor a = pair_low.unsqueeze(2), b = pair_high.unsqueeze(2);
  const at::Tensor least = at::minimum(a * factor_low, b * factor_low), most = at::maximum(a * factor_high, b * factor_high);
  return {between_ends(-pair_high, -pair_low),
          between_ends(at::maximum(least, least.transpose(1, 2)), at::minimum(most, most.transpose(1, 2)))};
}

// The margin is the last value itself.
Head margin_head(const at::Tensor& like) {
  const at::Tensor one = at::ones_like(like), zero = at::zeros_like(like), none = zero.unsqueeze(2);
  return {{one, zero}, {none, none}};
}

// Where exp overflows nothing is bounded; far before that the probability is constant to rounding.
at::Tensor bounded(const at::Tensor& u) {
  return u.clamp(-600, 600);
}

BallBounds joined(const Head& head, const Enclosure& slopes, const Enclosure& second) {
  const auto along = [](const at::Tensor& q, const at::Tensor& rows) { return at::matmul(q.unsqueeze(1), rows).squeeze(1); };
  const auto form = [](const at::Tensor& matrix, const at::Tensor& rows) {
    return at::matmul(at::matmul(rows.transpose(1, 2), matrix), rows);
  };
  const at::Tensor inner = slopes.center.abs(), outer = inner + slopes.radius;
  const at::Tensor q = head.first.center.abs(), size = head.second.center.abs();
  BallBounds result;
  result.gradient = {along(head.first.center, slopes.center), along(q + head.first.radius, outer) - along(q, inner)};
  result.hessian = {form(head.second.center, slopes.center), form(size + head.second.radius, outer) - form(size, inner)};
  if (second.center.defined()) {
    const Enclosure wide{head.first.center.unsqueeze(2).unsqueeze(3), head.first.radius.unsqueeze(2).unsqueeze(3)};
    result.hessian = plus(result.hessian, {(wide.center * second.center).sum(1), product_radius(wide, second).sum(1)});
  }
  for (Enclosure* bound : {&result.gradient, &result.hessian}) {
    bound->radius = bound->radius.clamp_min(0) + kSlack * bound->center.abs().amax(-1, /*keepdim=*/true);
  }
  return result;
}

at::Tensor largest(const Enclosure& range) {
  return range.center.abs() + range.radius;
}

// What rounding does on the way: forward to values, back to slopes.
class RoundingErrors {
 public:
  RoundingErrors(double unit, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& inputs)
      : unit_(unit), value_(sums(weight, bias, inputs)), products_(weight.abs()), slope_(at::zeros_like(products_)) {}

  // Through an activation whose value and first two derivatives lie in f, f1, f2, and an affine layer.
  void pass(const at::Tensor& weight, const at::Tensor& bias, const Enclosure& f, const Enclosure& f1, const Enclosure& f2) {
    const at::Tensor steep = largest(f1).unsqueeze(2);
    slope_ = at::matmul(weight.abs(), steep * slope_ + (largest(f2) * value_).unsqueeze(2) * products_);
    products_ = at::matmul(weight.abs(), steep * products_);
    value_ = times_vector(weight.abs(), largest(f1) * value_) + sums(weight, bias, largest(f));
  }

  // Of the gradient of a function of the last values with derivatives in `head`.
  at::Tensor of_gradient(const Head& head, std::int64_t operations) const {
    const at::Tensor first = largest(head.first), bend = times_vector(largest(head.second), value_);
    const at::Tensor slopes = at::matmul(first.unsqueeze(1), slope_) + at::matmul(bend.unsqueeze(1), products_);
    return (slopes + rounding_of(operations, unit_) * at::matmul(first.unsqueeze(1), products_)).squeeze(1);
  }

 private:
  at::Tensor sums(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& sizes) const {
    return rounding_of(weight.size(2) + kOperationsALayer, unit_) * (times_vector(weight.abs(), sizes) + bias.abs());
  }

  double unit_;
  at::Tensor value_, products_, slope_;  // [B, units], [B, units, n], [B, units, n]
};

// [B, outputs, classes]: margins of the class (two classes), or the others' logits above the class's.
at::Tensor differences(const at::Tensor& targets, std::int64_t count) {
  const at::Tensor one = at::eye(count, at::kDouble);
  if (count == 2) return (one.index_select(0, targets) - one.index_select(0, 1 - targets)).unsqueeze(1);
  const at::Tensor shifts = at::arange(1, count, at::kLong);
  const at::Tensor others = (targets.unsqueeze(1) + shifts).remainder(count);
  return one.index_select(0, others.flatten()).view({targets.size(0), count - 1, count}) -
         one.index_select(0, targets).unsqueeze(1);
}

}  // namespace

std::optional<std::string> SmoothChain::what_prevents(const Model& model) {
  if (model.network() == nullptr) return "layers that it does not show";
  const std::vector<Node>& nodes = model.network()->nodes();
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Operation& operation = nodes[i].operation;
    const auto* activation = std::get_if<op::Activation>(&operation);
    const bool fits = is_affine(operation) || (activation != nullptr && has_smooth_ranges(*activation));
    if (!fits || !reads_the_node_before(*model.network(), i)) return node_in_words(nodes[i]);
  }
  return std::nullopt;
}

SmoothChain::SmoothChain(const Model& model, const at::Tensor& sample) {
  const at::NoGradGuard no_graph;
  const Network network = model.network()->to(at::kDouble).to(at::kCPU);
  at::Tensor zero = at::zeros_like(sample.to(at::kCPU, at::kDouble));
  const std::int64_t n = zero.numel();
  // What the affine operations since the last activation make of the unit vectors and of zero.
  const auto unit_vectors = [](const at::Tensor& like) {
    std::vector<std::int64_t> shape = like.sizes().vec();
    shape[0] = like.numel();
    return at::eye(like.numel(), at::kDouble).view(shape);
  };
  at::Tensor units = unit_vectors(zero);
  const auto close_layer = [&](std::optional<op::Activation> activation) {
    const at::Tensor bias = zero.flatten();
    layers_.push_back({(units.flatten(1) - bias).t().contiguous(), bias, activation});
  };
  for (const Node& node : network.nodes()) {
    if (std::holds_alternative<op::Input>(node.operation)) continue;
    if (const auto* activation = std::get_if<op::Activation>(&node.operation)) {
      close_layer(*activation);
      zero = at::zeros_like(zero);
      units = unit_vectors(zero);
    } else {
      units = evaluate_operation(node.operation, {units});
      zero = evaluate_operation(node.operation, {zero});
    }
  }
  close_layer(std::nullopt);
  HOLDFAST_CHECK(layers_.front().weight.size(1) == n);
}

std::int64_t SmoothChain::bytes_a_sample() const {
  constexpr std::int64_t kCopies = 8;
  const std::int64_t n = layers_.front().weight.size(1);
  std::int64_t most = n * n;
  for (std::size_t i = 1; i < layers_.size(); ++i) {
    const std::int64_t out = layers_[i].weight.size(0), in = layers_[i].weight.size(1);
    most = std::max(most, out * n * (in + n));
  }
  return kCopies * static_cast<std::int64_t>(sizeof(double)) * most;
}

std::int64_t SmoothChain::operations() const {
  std::int64_t count = kOperationsBeside;
  for (const Layer& layer : layers_) count += layer.weight.size(0) + kOperationsALayer;
  return count;
}

BallBounds SmoothChain::bounds(const at::Tensor& inputs, const at::Tensor& classes, const at::Tensor& radii, Output output,
                               double unit) const {
  const at::NoGradGuard no_graph;
  HOLDFAST_CHECK(output == Output::kProbability || this->classes() == 2);
  const at::Tensor x = inputs.detach().to(at::kCPU, at::kDouble).flatten(1), reach = radii.unsqueeze(1);
  const at::Tensor to_margins = differences(classes.to(at::kCPU), layers_.back().weight.size(0));
  const auto layer = [&](std::size_t i) -> std::pair<at::Tensor, at::Tensor> {
    const Layer& own = layers_[i];
    if (i + 1 < layers_.size()) return {own.weight.unsqueeze(0), own.bias.unsqueeze(0)};
    return {at::matmul(to_margins, own.weight), at::matmul(to_margins, own.bias)};
  };

  // Sums of |products|: of the last layer those of both logits, not of their difference.
  const auto sizes = [&](std::size_t i) -> std::pair<at::Tensor, at::Tensor> {
    const Layer& own = layers_[i];
    if (i + 1 < layers_.size()) return {own.weight.unsqueeze(0), own.bias.unsqueeze(0)};
    return {at::matmul(to_margins.abs(), own.weight.abs()), at::matmul(to_margins.abs(), own.bias.abs())};
  };
  std::optional<RoundingErrors> errors;
  if (unit > 0) errors.emplace(unit, sizes(0).first, sizes(0).second, x.abs() + reach);
  const auto with_rounding = [&](BallBounds found, const Head& head) {
    if (errors) found.rounding = errors->of_gradient(head, operations());
    return found;
  };

  const auto [weight, bias] = layer(0);
  at::Tensor value = times_vector(weight, x) + bias;  // at x itself
  Enclosure slopes{weight.expand({x.size(0), -1, -1}), at::zeros({x.size(0), weight.size(1), weight.size(2)}, at::kDouble)};
  Enclosure second;  // none behind an affine layer
  at::Tensor low = value - reach * slopes.center.norm(2, 2), high = value + reach * slopes.center.norm(2, 2);
  for (std::size_t i = 1; i < layers_.size(); ++i) {
    const auto [w, b] = layer(i);
    const op::Activation& activation = *layers_[i - 1].activation;
    const Enclosure f = activation_range(activation, 0, low, high), f1 = activation_range(activation, 1, low, high),
                    f2 = activation_range(activation, 2, low, high);
    if (errors) errors->pass(sizes(i).first, sizes(i).second, f, f1, f2);
    Enclosure next_second = weighted_squares({w * f2.center.unsqueeze(1), w.abs() * f2.radius.unsqueeze(1)}, slopes);
    if (second.center.defined()) next_second = plus(next_second, passed_on(w, f1, second));
    second = next_second;
    const Enclosure f1_wide{f1.center.unsqueeze(2), f1.radius.unsqueeze(2)};
    slopes = {at::matmul(w, f1_wide.center * slopes.center), at::matmul(w.abs(), product_radius(f1_wide, slopes))};
    value = times_vector(w, activate(activation, value)) + b;
    const at::Tensor center = times_vector(w, f.center) + b, radius = times_vector(w.abs(), f.radius);
    const at::Tensor moved = reach * (slopes.center.abs() + slopes.radius).norm(2, 2);
    low = at::maximum(center - radius, value - moved);
    high = at::minimum(center + radius, value + moved);
  }
  if (output == Output::kMargin) return with_rounding(joined(margin_head(value), slopes, second), margin_head(value));
  low = bounded(at::minimum(low, value));
  high = bounded(at::maximum(high, value));
  const Head head = to_margins.size(2) == 2 ? sigmoid_head(low, high) : softmax_head(low, high);
  return with_rounding(joined(head, slopes, second), head);
}

}  // namespace holdfast::measure
