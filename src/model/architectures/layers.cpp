#include "layers.h"

#include <algorithm>

#include "holdfast/core/torch.h"

namespace holdfast::model::layers {

op::Linear linear(std::int64_t in, std::int64_t out) {
  return {.weight = at::empty({out, in}), .bias = at::empty({out})};
}

op::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, const ConvOptions& options) {
  return {.weight = at::empty({out, in / options.groups, kernel, kernel}),
          .bias = options.bias ? at::empty({out}) : at::Tensor(),
          .stride = {options.stride, options.stride},
          .padding = {options.padding, options.padding},
          .groups = options.groups};
}

op::BatchNorm batch_norm(std::int64_t channels, double epsilon) {
  return {.weight = at::empty({channels}),
          .bias = at::empty({channels}),
          .mean = at::empty({channels}),
          .variance = at::empty({channels}),
          .epsilon = epsilon};
}

op::MaxPool2d max_pool(std::int64_t kernel, std::int64_t stride) {
  if (stride == 0) stride = kernel;
  return {.kernel = {kernel, kernel}, .stride = {stride, stride}};
}

op::Pad same_padding(std::int64_t height, std::int64_t width, std::int64_t kernel, std::int64_t stride) {
  const auto missing = [&](std::int64_t size) {
    const std::int64_t outputs = (size + stride - 1) / stride;
    return std::max<std::int64_t>((outputs - 1) * stride + kernel - size, 0);
  };
  const std::int64_t x = missing(width), y = missing(height);
  return {.amounts = {x / 2, x - x / 2, y / 2, y - y / 2}};
}

}  // namespace holdfast::model::layers
