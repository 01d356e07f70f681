// The Hessian of the explained quantity by the input, as products with vectors: one double backward each, for a batch of
// samples at once.
#pragma once

#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/measure/measure.h"

namespace holdfast::measure {

class Hessian {
 public:
  // At the task's inputs, of `quantity`: probability, logit or ce of the task's classes. Holds the graph of all of them.
  Hessian(const MeasureTask& task, const std::string& quantity);

  // The gradient by the input, [B, n] double; n elements a sample.
  const at::Tensor& gradient() const { return gradient_; }
  // H v for every sample, [B, n] double -> the same.
  at::Tensor times(const at::Tensor& vectors) const;
  // All of it, [B, n, n]: n products.
  at::Tensor whole() const;

 private:
  std::unique_ptr<Linearization> held_;
  at::Tensor scale_;  // [B, 1] double
  at::Tensor gradient_;
};

// The gradient alone, [B, n] double, at `inputs` in place of the task's.
at::Tensor quantity_gradient(const MeasureTask& task, const std::string& quantity, const at::Tensor& inputs);

}  // namespace holdfast::measure
