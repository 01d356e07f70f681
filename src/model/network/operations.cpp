#include "operations.h"

#include <cmath>
#include <numeric>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/layout.h"
#include "holdfast/model/activation.h"
#include "holdfast/model/evaluate.h"

namespace holdfast::model {
namespace {

// [C] -> [C, 1, ...] to go with x [B, C, ...]; one number, or an array of a sample's shape, goes as it is.
at::Tensor beside_channels(const at::Tensor& values, const at::Tensor& x) {
  if (values.numel() == 1 || values.dim() > 1 || x.dim() <= 2) return values;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim() - 1), 1);
  shape[0] = values.numel();
  return values.view(shape);
}

at::Tensor apply(const op::Input&, const Operands&) {
  bug(__FILE__, __LINE__, "the input is node 0 alone");
}

at::Tensor apply(const op::Affine& affine, const Operands& in) {
  return in[0] * beside_channels(affine.scale, in[0]) + beside_channels(affine.shift, in[0]);
}

at::Tensor apply(const op::Standardize& standardize, const Operands& in) {
  const at::Tensor flat = in[0].flatten(1) * standardize.factor;
  const at::Tensor centred = flat - flat.mean(1, /*keepdim=*/true);
  // The floor is put on the variance, so that a flat sample has derivatives: the root of zero has none.
  const at::Tensor variance = centred.square().mean(1, /*keepdim=*/true).clamp_min(1.0 / static_cast<double>(flat.size(1)));
  return (centred * variance.rsqrt()).view_as(in[0]);
}

at::Tensor apply(const op::ReverseChannels&, const Operands& in) {
  return in[0].flip(1);
}

// A stack of networks: the batch is cut into as many equal parts, each for its own matrix.
at::Tensor apply_stack(const op::Linear& linear, const at::Tensor& x) {
  HOLDFAST_CHECK(x.dim() == 2 && linear.bias.defined());
  const at::Tensor parts = x.view({linear.weight.size(0), -1, x.size(1)});
  return at::baddbmm(linear.bias.unsqueeze(1), parts, linear.weight.transpose(1, 2)).flatten(0, 1);
}

at::Tensor apply(const op::Linear& linear, const Operands& in) {
  if (linear.weight.dim() == 3) return apply_stack(linear, in[0]);
  return at::linear(in[0], linear.weight, linear.bias);
}

at::Tensor apply(const op::Conv2d& conv, const Operands& in) {
  return at::conv2d(in[0], conv.weight, conv.bias, conv.stride, conv.padding, conv.dilation, conv.groups);
}

at::Tensor apply(const op::BatchNorm& norm, const Operands& in) {
  return batch_norm_evaluation(norm, in[0]);
}

at::Tensor apply(const op::Activation& activation, const Operands& in) {
  return activate(activation, in[0]);
}

at::Tensor apply(const op::MaxPool2d& pool, const Operands& in) {
  if (pools_pairs(pool, in[0])) return pool_pairs(in[0]);
  return at::max_pool2d(in[0], pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil_mode);
}

at::Tensor apply(const op::AvgPool2d& pool, const Operands& in) {
  return at::avg_pool2d(in[0], pool.kernel, pool.stride, pool.padding, pool.ceil_mode, pool.count_include_pad);
}

at::Tensor apply(const op::AdaptiveAvgPool2d& pool, const Operands& in) {
  return at::adaptive_avg_pool2d(in[0], pool.size);
}

at::Tensor apply(const op::Mean& mean, const Operands& in) {
  return in[0].mean(mean.dims, mean.keep);
}

at::Tensor apply(const op::Pad& pad, const Operands& in) {
  return at::constant_pad_nd(in[0], pad.amounts, pad.value);
}

at::Tensor apply(const op::Slice& slice, const Operands& in) {
  return in[0].slice(slice.dim, slice.start, slice.stop == -1 ? in[0].size(slice.dim) : slice.stop, slice.step);
}

at::Tensor apply(const op::Add&, const Operands& in) {
  return in[0] + in[1];
}

at::Tensor apply(const op::Multiply& multiply, const Operands& in) {
  return in[0] * multiply.factor;
}

at::Tensor apply(const op::Concat& concat, const Operands& in) {
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < in.size(); ++i) parts.push_back(in[i]);
  return at::cat(parts, concat.dim);
}

at::Tensor apply(const op::Flatten& flatten, const Operands& in) {
  return in[0].flatten(flatten.start);
}

at::Tensor apply(const op::Reshape& reshape, const Operands& in) {
  std::vector<std::int64_t> shape = {in[0].size(0)};
  shape.insert(shape.end(), reshape.shape.begin(), reshape.shape.end());
  return in[0].reshape(shape);
}

// Sides of one pair lie next to each other, so that neither this nor its reverse moves anything.
at::Tensor apply(const op::FoldSides&, const Operands& in) {
  return in[0].flatten(0, 1);
}

at::Tensor apply(const op::SideDistance&, const Operands& in) {
  const at::Tensor pairs = in[0].unflatten(0, {-1, 2});
  return (pairs.select(1, 0) - pairs.select(1, 1)).abs();
}

at::Tensor apply(const op::Adjacency& adjacency, const Operands& in) {
  const at::Tensor with_one = at::cat({in[0], at::ones({in[0].size(0), 1}, in[0].options())}, 1);
  const at::Tensor looped = with_one.index_select(1, adjacency.index).view({-1, adjacency.nodes, adjacency.nodes});
  // Degrees of magnitudes are at least 1, the loop's own.
  const at::Tensor root = looped.abs().sum(2).rsqrt();
  return looped * root.unsqueeze(1) * root.unsqueeze(2);
}

at::Tensor apply(const op::MatMul&, const Operands& in) {
  return at::matmul(in[0], in[1]);
}

at::Tensor apply(const op::Dropout&, const Operands& in) {
  return in[0];
}

at::Tensor apply(const op::Product&, const Operands& in) {
  return in[0] * in[1];
}

at::Tensor apply(const op::Abs&, const Operands& in) {
  return in[0].abs();
}

at::Tensor apply(const op::SelectIndex& select, const Operands& in) {
  return in[0].select(select.dim, select.index);
}

at::Tensor apply(const op::Permute& permute, const Operands& in) {
  return in[0].permute(permute.dims);
}

}  // namespace

at::Tensor evaluate(const Operation& operation, const Operands& operands) {
  return std::visit([&](const auto& known) { return apply(known, operands); }, operation);
}

at::Tensor evaluate_operation(const Operation& operation, const std::vector<at::Tensor>& operands) {
  std::vector<int> positions(operands.size());
  std::iota(positions.begin(), positions.end(), 0);
  return evaluate(operation, Operands(operands, positions));
}

int operand_count(const Operation& operation) {
  if (std::holds_alternative<op::Input>(operation)) return 0;
  const bool two = std::holds_alternative<op::Add>(operation) || std::holds_alternative<op::MatMul>(operation) ||
                   std::holds_alternative<op::Product>(operation);
  if (two) return 2;
  return std::holds_alternative<op::Concat>(operation) ? -1 : 1;
}

at::Tensor adjacency_index(std::int64_t nodes) {
  const std::int64_t edges = nodes * (nodes - 1) / 2;
  at::Tensor index = at::full({nodes, nodes}, edges, at::kLong);
  auto at = index.accessor<std::int64_t, 2>();
  for (std::int64_t i = 0; i < nodes; ++i) {
    for (std::int64_t j = i + 1; j < nodes; ++j) at[i][j] = at[j][i] = edge_index(nodes, i, j);
  }
  return index.view({-1});
}

}  // namespace holdfast::model
