// Tensors that may be larger than the memory. One of at least kLargeBytes lies in a file (core/memory.h).
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace holdfast {

at::Tensor large_empty(at::IntArrayRef shape, at::ScalarType type);
// Rows begin <= i < end of a tensor, part by part, as many at once as take some megabytes; for tensors that may be mapped.
void for_each_part(const at::Tensor& tensor, const std::function<void(std::int64_t begin, const at::Tensor& part)>& use);
// As index_select(0, rows) and as `change` of the whole, row by row; large results are mapped.
at::Tensor large_select(const at::Tensor& tensor, const at::Tensor& rows);
at::Tensor large_change(const at::Tensor& tensor, at::ScalarType type,
                        const std::function<at::Tensor(std::int64_t begin, const at::Tensor& part)>& change);

}  // namespace holdfast
