// What each operation computes, in evaluation mode.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast {

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

// How many values the operation reads; -1: one or more.
int operand_count(const Operation& operation);

// Where each element of (A + I) lies in [edges..., 1]: [nodes * nodes], for op::Adjacency.
at::Tensor adjacency_index(std::int64_t nodes);

}  // namespace holdfast
