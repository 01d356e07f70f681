// Words for what a model is made of, the same for every kind of model.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast::model {

// "5 operations (2 conv2d, 2 activation, linear)", kinds in order of first appearance.
std::string describe_operations(const Network& network);

// "float32"
std::string type_word(at::ScalarType type);
// "the CPU", "the GPU cuda:0"
std::string device_words(at::Device device);

}  // namespace holdfast::model
