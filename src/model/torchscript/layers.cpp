// Readers of operations with weights, and of pooling.
#include "holdfast/core/error.h"
#include "holdfast/core/words.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

at::Tensor vector_or_undefined(const OperatorCall& call, const char* argument) {
  const at::Tensor value = call.constant(argument);
  if (value.defined() && value.dim() != 1) call.refuse(fmt::format("has '{}' that is not a vector", argument));
  return value;
}

// One number stands for both directions; none means `fallback`.
std::vector<std::int64_t> both(const OperatorCall& call, const char* argument, const std::vector<std::int64_t>& fallback = {}) {
  std::vector<std::int64_t> values = call.integers(argument);
  if (values.empty()) return fallback;
  if (values.size() == 1) values.push_back(values[0]);
  return values;
}

at::Tensor matrix(const OperatorCall& call, const char* argument) {
  const at::Tensor value = call.constant(argument);
  if (!value.defined() || value.dim() != 2) call.refuse(fmt::format("has '{}' that is not a matrix", argument));
  return value;
}

Symbol linear(const OperatorCall& call) {
  return call.add(op::Linear{matrix(call, "weight"), vector_or_undefined(call, "bias")}, {call.tensor("input")},
                  call.owner("weight"));
}

// bias + x W
Symbol addmm(const OperatorCall& call) {
  if (call.real("beta") != 1 || call.real("alpha") != 1) call.refuse("scales its parts");
  return call.add(op::Linear{matrix(call, "mat2").t().contiguous(), vector_or_undefined(call, "self")}, {call.tensor("mat1")});
}

Symbol matmul(const OperatorCall& call, const char* right) {
  if (!call.is_tensor(right)) return call.add(op::Linear{matrix(call, right).t().contiguous(), {}}, {call.tensor("self")});
  if (call.shape("self").size() < 3 || call.shape("self").size() != call.shape(right).size())
    call.refuse("mixes the samples of a batch");
  return call.add(op::MatMul{}, {call.tensor("self"), call.tensor(right)});
}

std::vector<std::int64_t> padding_of(const OperatorCall& call, const at::Tensor& weight,
                                     const std::vector<std::int64_t>& dilation) {
  const auto* known = std::get_if<Known>(&call.symbol("padding").is);
  if (known == nullptr || !known->value.isString()) return both(call, "padding");
  if (call.text("padding") == "valid") return {0, 0};
  std::vector<std::int64_t> padding;
  for (const std::int64_t i : {0, 1}) {
    const std::int64_t total = dilation[static_cast<std::size_t>(i)] * (weight.size(2 + i) - 1);
    if (total % 2 != 0) call.refuse("pads one side more than the other");
    padding.push_back(total / 2);
  }
  return padding;
}

Symbol conv2d(const OperatorCall& call) {
  op::Conv2d conv{.weight = call.constant("weight"), .bias = vector_or_undefined(call, "bias")};
  if (conv.weight.dim() != 4)
    call.refuse(fmt::format("is a convolution in {}, not 2", counted(conv.weight.dim() - 2, "dimension")));
  if (call.shape("input").size() != 4) call.refuse("has no batch dimension");
  if (call.has("transposed") && call.flag("transposed")) call.refuse("is a transposed convolution");
  conv.stride = both(call, "stride");
  conv.dilation = both(call, "dilation");
  conv.padding = padding_of(call, conv.weight, conv.dilation);
  conv.groups = call.integer("groups");
  return call.add(conv, {call.tensor("input")}, call.owner("weight"));
}

Symbol batch_norm(const OperatorCall& call) {
  op::BatchNorm norm{.weight = vector_or_undefined(call, "weight"),
                     .bias = vector_or_undefined(call, "bias"),
                     .mean = vector_or_undefined(call, "running_mean"),
                     .variance = vector_or_undefined(call, "running_var")};
  if (call.flag("training") || !norm.mean.defined() || !norm.variance.defined()) call.refuse("uses the batch's statistics");
  norm.epsilon = call.real("eps");
  if (!call.is_none("momentum")) norm.momentum = call.real("momentum");
  return call.add(norm, {call.tensor("input")}, call.owner("weight"));
}

Symbol max_pool2d(const OperatorCall& call) {
  op::MaxPool2d pool;
  pool.kernel = both(call, "kernel_size");
  pool.stride = both(call, "stride", pool.kernel);
  pool.padding = both(call, "padding");
  pool.dilation = both(call, "dilation");
  pool.ceil_mode = call.flag("ceil_mode");
  return call.add(pool, {call.tensor("self")});
}

// A window as large as the map, taken from its size: whatever the map's size, one value a channel.
bool window_is_the_map(const OperatorCall& call) {
  const auto* kernel = std::get_if<Sequence>(&call.symbol("kernel_size").is);
  if (kernel == nullptr || kernel->items.empty()) return false;
  const at::IntArrayRef shape = call.shape("self");
  for (std::size_t i = 0; i < 2; ++i) {
    const auto* known = std::get_if<Known>(&kernel->items[kernel->items.size() == 1 ? 0 : i].is);
    if (known == nullptr || !known->from_shape || known->value.toInt() != shape[shape.size() - 2 + i]) return false;
  }
  return true;
}

Symbol avg_pool2d(const OperatorCall& call) {
  if (!call.is_none("divisor_override")) call.refuse("divides by a number of its own");
  if (window_is_the_map(call)) return call.add(op::AdaptiveAvgPool2d{}, {call.tensor("self")});
  op::AvgPool2d pool;
  pool.kernel = both(call, "kernel_size");
  pool.stride = both(call, "stride", pool.kernel);
  pool.padding = both(call, "padding");
  pool.ceil_mode = call.flag("ceil_mode");
  pool.count_include_pad = call.flag("count_include_pad");
  return call.add(pool, {call.tensor("self")});
}

Symbol adaptive_avg_pool2d(const OperatorCall& call) {
  return call.add(op::AdaptiveAvgPool2d{both(call, "output_size")}, {call.tensor("self")});
}

Symbol mean(const OperatorCall& call) {
  if (!call.has("dim") || call.is_none("dim")) call.refuse("works across the samples of a batch");
  const auto rank = static_cast<std::int64_t>(call.shape("self").size());
  op::Mean mean{.dims = call.integers("dim"), .keep = call.flag("keepdim")};
  for (std::int64_t& dim : mean.dims) {
    dim = dim < 0 ? dim + rank : dim;
    if (dim == 0) call.refuse("works across the samples of a batch");
  }
  return call.add(mean, {call.tensor("self")});
}

}  // namespace

const ReaderTable& layer_readers() {
  static const ReaderTable table = {
      {"aten::linear", linear},
      {"aten::addmm", addmm},
      {"aten::matmul", [](const OperatorCall& call) { return matmul(call, "other"); }},
      {"aten::mm", [](const OperatorCall& call) { return matmul(call, "mat2"); }},
      {"aten::bmm", [](const OperatorCall& call) { return matmul(call, "mat2"); }},
      {"aten::conv2d", conv2d},
      {"aten::_convolution", conv2d},
      {"aten::_convolution_mode", conv2d},
      {"aten::convolution", conv2d},
      {"aten::batch_norm", batch_norm},
      {"aten::max_pool2d", max_pool2d},
      {"aten::avg_pool2d", avg_pool2d},
      {"aten::adaptive_avg_pool2d", adaptive_avg_pool2d},
      {"aten::mean", mean},
  };
  return table;
}

}  // namespace holdfast::model::torchscript
