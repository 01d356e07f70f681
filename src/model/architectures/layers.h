// Operations with room for their weights, for the architectures. `initialise` fills them.
#pragma once

#include <cstdint>

#include "holdfast/model/network.h"

namespace holdfast::model::layers {

struct ConvOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
};

op::Linear linear(std::int64_t in, std::int64_t out);
op::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, const ConvOptions& options = {});
op::BatchNorm batch_norm(std::int64_t channels, double epsilon = 1e-5);
// Windows of `kernel` that do not overlap unless a stride is given.
op::MaxPool2d max_pool(std::int64_t kernel, std::int64_t stride = 0);
// TensorFlow's "same": as many outputs as ceil(size / stride), the odd row or column of zeros at the bottom and right.
op::Pad same_padding(std::int64_t height, std::int64_t width, std::int64_t kernel, std::int64_t stride);

}  // namespace holdfast::model::layers
