#include "deep_lift_rules.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"

namespace holdfast::explain {
namespace {

using Tensors = std::vector<at::Tensor>;

template <class Known>
constexpr bool kLinear =
    std::is_same_v<Known, op::Affine> || std::is_same_v<Known, op::ReverseChannels> || std::is_same_v<Known, op::Linear> ||
    std::is_same_v<Known, op::Conv2d> || std::is_same_v<Known, op::BatchNorm> || std::is_same_v<Known, op::AvgPool2d> ||
    std::is_same_v<Known, op::AdaptiveAvgPool2d> || std::is_same_v<Known, op::Mean> || std::is_same_v<Known, op::Pad> ||
    std::is_same_v<Known, op::Slice> || std::is_same_v<Known, op::Add> || std::is_same_v<Known, op::Multiply> ||
    std::is_same_v<Known, op::Concat> || std::is_same_v<Known, op::Flatten> || std::is_same_v<Known, op::Reshape> ||
    std::is_same_v<Known, op::FoldSides> || std::is_same_v<Known, op::Dropout> || std::is_same_v<Known, op::SelectIndex> ||
    std::is_same_v<Known, op::Permute> || std::is_same_v<Known, op::Input>;

// (y - y0) / (x - x0), and `otherwise` where |x - x0| <= near.
at::Tensor slope(const at::Tensor& rise, const at::Tensor& run, const at::Tensor& otherwise, double near) {
  const at::Tensor is_near = run.abs() <= near;
  return at::where(is_near, otherwise, rise / at::where(is_near, at::ones_like(run), run));
}

// ((d^-1/2) - (d0^-1/2)) / (d - d0) for r = d^-1/2, without cancellation.
at::Tensor inverse_root_slope(const at::Tensor& r, const at::Tensor& r0) {
  return -(r * r0).square() / (r + r0);
}

struct Rescale {
  const LayerStep& step;
  const LayerValues& reference;

  at::Tensor x0(std::size_t i = 0) const { return beside(step.operand_of(reference, i), step.operand(i)); }
  at::Tensor y0() const { return beside(step.value_of(reference), step.value()); }

  template <class Known>
    requires kLinear<Known>
  Tensors operator()(const Known&) const {
    return step.pull(step.cotangent());
  }

  // The ratio of smooth activations loses its digits before the derivative half-way stops being exact: at the root of the
  // rounding both are good. Ratios of piecewise linear ones are exact.
  Tensors operator()(const op::Activation& activation) const {
    const at::Tensor x = step.operand(), base = x0();
    const at::Tensor middle = (x + base) / 2;
    const LocalGraph half_way([&](const Tensors& at) { return step.activate_at(at[0]); }, {middle});
    const at::Tensor derivative = half_way.pull(at::ones_like(middle))[0];
    const bool exact = is_piecewise_linear(activation) && step.beta() == 0;
    const double rounding = x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                           : static_cast<double>(std::numeric_limits<float>::epsilon());
    return {step.cotangent() * slope(step.value() - y0(), x - base, derivative, exact ? 0 : std::sqrt(rounding))};
  }

  Tensors operator()(const op::Abs&) const {
    const at::Tensor x = step.operand(), base = x0();
    return {step.cotangent() * slope(x.abs() - base.abs(), x - base, x.sign(), 0)};
  }

  Tensors operator()(const op::SideDistance&) const {
    const auto difference = [](const at::Tensor& sides) {
      const at::Tensor pairs = sides.unflatten(0, {-1, 2});
      return pairs.select(1, 0) - pairs.select(1, 1);
    };
    const at::Tensor d = difference(step.operand()), d0 = difference(step.operand_of(reference));
    const at::Tensor pulled = step.cotangent() * slope(d.abs() - d0.abs(), d - d0, d.sign(), 0);
    return {at::stack({pulled, -pulled}, 1).flatten(0, 1)};
  }

  Tensors operator()(const op::MaxPool2d& pool) const {
    const at::Tensor x = step.operand(), base = x0().expand_as(x);
    const auto winners = [&](const at::Tensor& values) {
      return std::get<1>(
          at::max_pool2d_with_indices(values.detach(), pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil_mode));
    };
    const at::Tensor rise = step.value() - y0();
    const at::Tensor winner = at::where(rise >= 0, winners(x), winners(base)).flatten(2);
    const at::Tensor run = (x - base).flatten(2).gather(2, winner);
    const at::Tensor pulled = step.cotangent().flatten(2) * slope(rise.flatten(2), run, at::ones_like(run), 0);
    return {at::zeros_like(x.flatten(2)).scatter_add(2, winner, pulled).view_as(x)};
  }

  Tensors operator()(const op::Product&) const { return of_product(); }
  Tensors operator()(const op::MatMul&) const { return of_product(); }

  Tensors of_product() const {
    const Tensors middle = {(step.operand(0) + x0(0)) / 2, (step.operand(1) + x0(1)) / 2};
    return LocalGraph(step.node().operation, middle).pull(step.cotangent());
  }

  Tensors operator()(const op::Standardize& standardize) const {
    const auto centred = [&](const at::Tensor& values) {
      const at::Tensor flat = values.flatten(1) * standardize.factor;
      return flat - flat.mean(1, /*keepdim=*/true);
    };
    const auto count = static_cast<double>(step.operand().numel() / step.operand().size(0));
    const at::Tensor u = centred(step.operand()), u0 = centred(x0());
    const at::Tensor v = u.square().mean(1, true), v0 = u0.square().mean(1, true);
    const at::Tensor floored = v.clamp_min(1 / count), floored0 = v0.clamp_min(1 / count);
    const at::Tensor s = floored.rsqrt(), s0 = floored0.rsqrt();
    const at::Tensor by_variance =
        inverse_root_slope(s, s0) * slope(floored - floored0, v - v0, (v > 1 / count).to(v.scalar_type()), 0);
    const at::Tensor m = step.cotangent().flatten(1);
    const at::Tensor pulled = m * s + (m * u0).sum(1, true) * by_variance * (u + u0) / count;
    return {((pulled - pulled.mean(1, true)) * standardize.factor).view_as(step.operand())};
  }

  Tensors operator()(const op::Adjacency& adjacency) const {
    const auto looped = [&](const at::Tensor& edges) {
      const at::Tensor with_one = at::cat({edges, at::ones({edges.size(0), 1}, edges.options())}, 1);
      return with_one.index_select(1, adjacency.index).view({-1, adjacency.nodes, adjacency.nodes});
    };
    const at::Tensor a = looped(step.operand()), a0 = looped(x0());
    const at::Tensor r = a.abs().sum(2).rsqrt(), r0 = a0.abs().sum(2).rsqrt();
    const at::Tensor m = step.cotangent();
    const auto outer = [](const at::Tensor& roots) { return roots.unsqueeze(1) * roots.unsqueeze(2); };
    // First the product of both roots, then each root, its degree and the magnitudes in it.
    const at::Tensor of_roots = m * (a + a0) / 2;
    const at::Tensor of_root = ((of_roots + of_roots.transpose(1, 2)) * ((r + r0) / 2).unsqueeze(1)).sum(2);
    const at::Tensor of_degree = of_root * inverse_root_slope(r, r0);
    const at::Tensor pulled =
        m * (outer(r) + outer(r0)) / 2 + of_degree.unsqueeze(2) * slope(a.abs() - a0.abs(), a - a0, a.sign(), 0);
    const std::int64_t edges = step.operand().size(1);
    return {at::zeros({m.size(0), edges + 1}, m.options()).index_add(1, adjacency.index, pulled.flatten(1)).slice(1, 0, edges)};
  }
};

}  // namespace

std::vector<at::Tensor> rescale(const LayerStep& step, const LayerValues& reference) {
  return std::visit(Rescale{step, reference}, step.node().operation);
}

}  // namespace holdfast::explain
