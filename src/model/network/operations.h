// What each operation computes, in evaluation mode.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast::model {

// The values that a node reads.
class Operands {
 public:
  Operands(const std::vector<at::Tensor>& values, const std::vector<int>& positions) : values_(values), positions_(positions) {}

  const at::Tensor& operator[](std::size_t i) const { return values_[static_cast<std::size_t>(positions_[i])]; }
  std::size_t size() const { return positions_.size(); }

 private:
  const std::vector<at::Tensor>& values_;
  const std::vector<int>& positions_;
};

at::Tensor evaluate(const Operation& operation, const Operands& operands);

// Gives the number of values that the operation reads; -1 means one or more.
int operand_count(const Operation& operation);

// Where each element of (A + I) lies in [edges..., 1]: [nodes * nodes], for op::Adjacency.
at::Tensor adjacency_index(std::int64_t nodes);

// Batch normalisation in evaluation mode: (x - mean) / sqrt(variance + epsilon) * weight + bias over dimension 1, with the
// running statistics; differentiable any number of times in x, weight and bias. One fused pass forward, one multiplication
// backward.
at::Tensor batch_norm_evaluation(const op::BatchNorm& norm, const at::Tensor& x);

// Batch normalisation in training mode. With a share of a batch that several ranks have, its statistics are those of the whole
// batch. The running ones are updated.
at::Tensor batch_norm_training(const op::BatchNorm& norm, const at::Tensor& x, const BatchShare* share);

// The maximum over windows of 2 x 2 that do not overlap, which nearly every small network has. Torch's own kernel is a good part
// of cnn_chen's passes; this one gives the same values and gradients, of any order, in less time.
// Whether pool_pairs() computes this: 2 x 2, stride 2, nothing else, a contiguous batch of images on the processor.
bool pools_pairs(const op::MaxPool2d& pool, const at::Tensor& x);
// [B, C, H, W] -> [B, C, H/2, W/2]; a row or column that is left over is dropped.
at::Tensor pool_pairs(const at::Tensor& x);

}  // namespace holdfast::model
