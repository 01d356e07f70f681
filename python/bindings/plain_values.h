// Small conversions that several calls share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/metric/levels.h"

namespace holdfast::python {

at::Tensor to_tensor(const std::vector<double>& values);
// Reads an int64 tensor on the CPU.
std::vector<std::int64_t> to_vector(const at::Tensor& labels);

// A metric with its levels, without the values.
Json summary_of(const Assessment& assessment);

}  // namespace holdfast::python
