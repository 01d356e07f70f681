// Shapes without numbers: each operation is run on tensors of torch's meta device, which have a shape and no data. Outside Python
// torch has no such convolution and no such adaptive pooling.
#include <ATen/native/Pool.h>

#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/model/evaluate.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

using Shape = std::vector<std::int64_t>;
using Read = std::vector<at::IntArrayRef>;

[[noreturn]] void does_not_fit(const Operation& operation, at::IntArrayRef shape) {
  throw DoesNotFit(fmt::format("{} does not take a tensor of shape {}", operation_name(operation), to_string(shape.vec())));
}

at::Tensor without_data(at::IntArrayRef shape) {
  return at::empty(shape, at::TensorOptions(at::kMeta).dtype(at::kFloat));
}

void drop_data(at::Tensor& weight) {
  if (weight.defined()) weight = without_data(weight.sizes());
}

Operation without_weights(Operation operation) {
  if (auto* linear = std::get_if<op::Linear>(&operation)) {
    drop_data(linear->weight);
    drop_data(linear->bias);
  } else if (auto* affine = std::get_if<op::Affine>(&operation)) {
    drop_data(affine->scale);
    drop_data(affine->shift);
  }
  return operation;
}

// One number, one for each channel, or an array of a sample's shape.
bool goes_with(const at::Tensor& constant, at::IntArrayRef shape) {
  if (constant.dim() == 1 && constant.numel() > 1) return shape.size() > 1 && constant.numel() == shape[1];
  return constant.dim() == 0 || constant.dim() + 1 == std::ssize(shape);
}

// Torch takes more than these operations mean here: an image without a batch, or tensors of different ranks, which it stretches
// over the samples.
bool is_meant_for(const Operation& operation, const Read& read) {
  if (is_one_of<op::Conv2d, op::MaxPool2d, op::AvgPool2d, op::AdaptiveAvgPool2d>(operation)) return read[0].size() == 4;
  if (is_one_of<op::Add, op::Product, op::MatMul>(operation)) return read[0].size() == read[1].size();
  if (is_one_of<op::Linear>(operation)) return read[0].size() >= 2;
  if (const auto* norm = std::get_if<op::BatchNorm>(&operation)) return read[0].size() >= 2 && read[0][1] == norm->mean.numel();
  if (const auto* affine = std::get_if<op::Affine>(&operation)) {
    return goes_with(affine->scale, read[0]) && goes_with(affine->shift, read[0]);
  }
  return true;
}

// A size below 1 where the convolution and the samples do not fit.
Shape convolved(const op::Conv2d& conv, at::IntArrayRef shape) {
  const bool has_two = conv.stride.size() == 2 && conv.padding.size() == 2 && conv.dilation.size() == 2;
  if (!has_two || std::min(conv.stride[0], conv.stride[1]) < 1 || shape[1] != conv.weight.size(1) * conv.groups) return {0};
  Shape result = {shape[0], conv.weight.size(0)};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t kernel = conv.weight.sizes()[2 + i];
    result.push_back(at::native::pooling_output_shape<std::int64_t>(shape[2 + i], kernel, conv.padding[i], conv.stride[i],
                                                                    conv.dilation[i], /*ceil_mode=*/false));
  }
  return result;
}

Shape computed(const Operation& operation, const Read& read) {
  if (is_one_of<op::BatchNorm, op::Activation, op::Multiply, op::Abs, op::ReverseChannels>(operation)) return read[0].vec();
  if (const auto* conv = std::get_if<op::Conv2d>(&operation)) return convolved(*conv, read[0]);
  if (const auto* pool = std::get_if<op::AdaptiveAvgPool2d>(&operation))
    return {read[0][0], read[0][1], pool->size[0], pool->size[1]};
  std::vector<at::Tensor> operands;
  for (const at::IntArrayRef shape : read) operands.push_back(without_data(shape));
  const at::NoGradGuard no_gradients;
  return evaluate_operation(without_weights(operation), operands).sizes().vec();
}

}  // namespace

Shape shape_after(const Operation& operation, const Read& read) {
  if (!is_meant_for(operation, read)) does_not_fit(operation, read.back());
  try {
    Shape result = computed(operation, read);
    if (std::all_of(result.begin(), result.end(), [](std::int64_t size) { return size > 0; })) return result;
  } catch (const c10::Error&) {  // torch says the same at length
  }
  does_not_fit(operation, read.back());
}

}  // namespace holdfast::model::torchscript
