// Small readings of per-sample tensors, shared by what is aggregated and what is listed.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace holdfast::experiment {

// Empty for an undefined tensor.
std::vector<std::int64_t> to_vector(const at::Tensor& tensor);

// Probability of the class, [B] double.
at::Tensor confidence(const at::Tensor& logits, const at::Tensor& classes);

}  // namespace holdfast::experiment
