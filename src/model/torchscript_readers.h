// The tables of operations that can be read, one for each file of readers.
#pragma once

#include <string>
#include <unordered_map>

#include "torchscript_import.h"

namespace holdfast::torchscript {

using ReaderTable = std::unordered_map<std::string, OperationReader>;

const ReaderTable& layer_readers();        // weights and pooling
const ReaderTable& elementwise_readers();  // activations and arithmetic
const ReaderTable& shape_readers();        // views, parts and joins

}  // namespace holdfast::torchscript
