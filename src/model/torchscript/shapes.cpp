// Shapes without running anything: torch's own shape functions cover only part of the operations outside Python, and trying
// a few hundred sizes of images must be cheap.
#include <ATen/native/Pool.h>

#include <fmt/ranges.h>

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

using Shape = std::vector<std::int64_t>;
using Read = std::vector<at::IntArrayRef>;

[[noreturn]] void does_not_fit(const char* operation, at::IntArrayRef shape) {
  throw DoesNotFit(fmt::format("{} does not take a tensor of shape {}", operation, to_string(shape.vec())));
}

std::size_t rank(at::IntArrayRef shape) {
  return shape.size();
}

// The last two dimensions through windows, as torch counts them.
Shape pooled(const char* name, at::IntArrayRef shape, const Shape& kernel, const Shape& stride, const Shape& padding,
             const Shape& dilation, bool ceil_mode) {
  if (rank(shape) != 4 || kernel.size() != 2 || stride.size() != 2 || padding.size() != 2 || dilation.size() != 2)
    does_not_fit(name, shape);
  Shape result = shape.vec();
  for (std::size_t i = 0; i < 2; ++i) {
    if (stride[i] < 1) does_not_fit(name, shape);
    result[2 + i] =
        at::native::pooling_output_shape<std::int64_t>(shape[2 + i], kernel[i], padding[i], stride[i], dilation[i], ceil_mode);
    if (result[2 + i] < 1) does_not_fit(name, shape);
  }
  return result;
}

// Broadcasts two shapes: their sizes are equal or 1.
Shape broadcast(const char* name, at::IntArrayRef left, at::IntArrayRef right) {
  if (rank(left) != rank(right)) does_not_fit(name, right);
  Shape result = left.vec();
  for (std::size_t i = 0; i < rank(left); ++i) {
    if (left[i] != right[i] && left[i] != 1 && right[i] != 1) does_not_fit(name, right);
    result[i] = std::max(left[i], right[i]);
  }
  return result;
}

std::int64_t elements(at::IntArrayRef shape, std::size_t from) {
  std::int64_t count = 1;
  for (std::size_t i = from; i < rank(shape); ++i) count *= shape[i];
  return count;
}

Shape after(const op::Linear& linear, const Read& read) {
  if (rank(read[0]) < 2 || read[0].back() != linear.weight.size(1)) does_not_fit("linear", read[0]);
  Shape result = read[0].vec();
  result.back() = linear.weight.size(0);
  return result;
}

Shape after(const op::Conv2d& conv, const Read& read) {
  if (rank(read[0]) != 4 || read[0][1] != conv.weight.size(1) * conv.groups) does_not_fit("conv2d", read[0]);
  const Shape kernel = {conv.weight.size(2), conv.weight.size(3)};
  Shape result = pooled("conv2d", read[0], kernel, conv.stride, conv.padding, conv.dilation, /*ceil_mode=*/false);
  result[1] = conv.weight.size(0);
  return result;
}

Shape after(const op::BatchNorm& norm, const Read& read) {
  if (rank(read[0]) < 2 || read[0][1] != norm.mean.numel()) does_not_fit("batch_norm", read[0]);
  return read[0].vec();
}

Shape after(const op::MaxPool2d& pool, const Read& read) {
  return pooled("max_pool2d", read[0], pool.kernel, pool.stride, pool.padding, pool.dilation, pool.ceil_mode);
}

Shape after(const op::AvgPool2d& pool, const Read& read) {
  return pooled("avg_pool2d", read[0], pool.kernel, pool.stride, pool.padding, {1, 1}, pool.ceil_mode);
}

Shape after(const op::AdaptiveAvgPool2d& pool, const Read& read) {
  if (rank(read[0]) != 4) does_not_fit("adaptive_avg_pool2d", read[0]);
  return {read[0][0], read[0][1], pool.size[0], pool.size[1]};
}

Shape after(const op::Mean& mean, const Read& read) {
  Shape result;
  for (std::size_t i = 0; i < rank(read[0]); ++i) {
    const bool over = std::find(mean.dims.begin(), mean.dims.end(), static_cast<std::int64_t>(i)) != mean.dims.end();
    if (!over)
      result.push_back(read[0][i]);
    else if (mean.keep)
      result.push_back(1);
  }
  return result;
}

Shape after(const op::Pad& pad, const Read& read) {
  Shape result = read[0].vec();
  if (pad.amounts.size() % 2 != 0 || pad.amounts.size() / 2 > result.size()) does_not_fit("pad", read[0]);
  for (std::size_t i = 0; 2 * i < pad.amounts.size(); ++i) {
    std::int64_t& size = result[result.size() - 1 - i];
    size += pad.amounts[2 * i] + pad.amounts[2 * i + 1];
    if (size < 1) does_not_fit("pad", read[0]);
  }
  return result;
}

Shape after(const op::Slice& slice, const Read& read) {
  Shape result = read[0].vec();
  std::int64_t& size = result.at(static_cast<std::size_t>(slice.dim));
  const std::int64_t stop = slice.stop == -1 ? size : std::min(slice.stop, size);
  if (slice.start >= stop || slice.step < 1) does_not_fit("slice", read[0]);
  size = (stop - slice.start + slice.step - 1) / slice.step;
  return result;
}

Shape after(const op::Concat& concat, const Read& read) {
  const auto dim = static_cast<std::size_t>(concat.dim);
  Shape result = read[0].vec();
  if (dim >= result.size()) does_not_fit("concat", read[0]);
  for (std::size_t i = 1; i < read.size(); ++i) {
    if (rank(read[i]) != result.size()) does_not_fit("concat", read[i]);
    for (std::size_t j = 0; j < result.size(); ++j) {
      if (j != dim && read[i][j] != result[j]) does_not_fit("concat", read[i]);
    }
    result[dim] += read[i][dim];
  }
  return result;
}

Shape after(const op::Flatten& flatten, const Read& read) {
  const auto start = static_cast<std::size_t>(flatten.start);
  Shape result(read[0].begin(), read[0].begin() + flatten.start);
  result.push_back(elements(read[0], start));
  return result;
}

Shape after(const op::Reshape& reshape, const Read& read) {
  Shape result = {read[0][0]};
  std::int64_t known = 1;
  for (const std::int64_t size : reshape.shape) known *= size == -1 ? 1 : size;
  const std::int64_t all = elements(read[0], 1);
  if (known < 1 || all % known != 0) does_not_fit("reshape", read[0]);
  for (const std::int64_t size : reshape.shape) result.push_back(size == -1 ? all / known : size);
  if (elements(result, 1) != all) does_not_fit("reshape", read[0]);
  return result;
}

Shape after(const op::MatMul&, const Read& read) {
  const std::size_t last = rank(read[0]) - 1;
  if (last < 2 || rank(read[1]) != last + 1 || read[0][last] != read[1][last - 1]) does_not_fit("matmul", read[1]);
  Shape result = broadcast("matmul", read[0].slice(0, last - 1), read[1].slice(0, last - 1));
  result.insert(result.end(), {read[0][last - 1], read[1][last]});
  return result;
}

Shape after(const op::SelectIndex& select, const Read& read) {
  Shape result = read[0].vec();
  const std::int64_t size = result.at(static_cast<std::size_t>(select.dim));
  if (select.index >= size || select.index < -size) does_not_fit("select", read[0]);
  result.erase(result.begin() + select.dim);
  return result;
}

Shape after(const op::Permute& permute, const Read& read) {
  if (permute.dims.size() != rank(read[0])) does_not_fit("permute", read[0]);
  Shape result;
  for (const std::int64_t dim : permute.dims) result.push_back(read[0][static_cast<std::size_t>(dim)]);
  return result;
}

Shape broadcast_constant(const at::Tensor& constant, at::IntArrayRef shape) {
  const bool channels = constant.dim() == 1 && constant.numel() > 1;
  const bool fits = channels ? constant.numel() == shape[1]
                             : constant.dim() == 0 || constant.dim() + 1 == static_cast<std::int64_t>(rank(shape));
  if (!fits) does_not_fit("affine", shape);
  if (channels || constant.dim() == 0) return shape.vec();
  Shape sample = {1};
  sample.insert(sample.end(), constant.sizes().begin(), constant.sizes().end());
  return broadcast("affine", shape, sample);
}

Shape after(const op::Affine& affine, const Read& read) {
  const Shape scaled = broadcast_constant(affine.scale, read[0]);
  return broadcast_constant(affine.shift, scaled);
}

Shape after(const op::Add&, const Read& read) {
  return broadcast("add", read[0], read[1]);
}
Shape after(const op::Product&, const Read& read) {
  return broadcast("product", read[0], read[1]);
}
Shape after(const op::Activation&, const Read& read) {
  return read[0].vec();
}
Shape after(const op::Multiply&, const Read& read) {
  return read[0].vec();
}
Shape after(const op::Abs&, const Read& read) {
  return read[0].vec();
}
Shape after(const op::ReverseChannels&, const Read& read) {
  return read[0].vec();
}

// Operations that only architectures of our own have.
template <class Other>
Shape after(const Other&, const Read&) {
  bug(__FILE__, __LINE__, "an operation that graphs are read into");
}

}  // namespace

Shape shape_after(const Operation& operation, const Read& read) {
  return std::visit([&](const auto& known) { return after(known, read); }, operation);
}

}  // namespace holdfast::model::torchscript
