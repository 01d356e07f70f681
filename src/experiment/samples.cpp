#include "samples.h"

#include "holdfast/core/torch.h"

namespace holdfast::experiment {

std::vector<std::int64_t> to_vector(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor values = tensor.to(at::kCPU, at::kLong).contiguous();
  return {values.const_data_ptr<std::int64_t>(), values.const_data_ptr<std::int64_t>() + values.numel()};
}

at::Tensor confidence(const at::Tensor& logits, const at::Tensor& classes) {
  return class_scores(logits, classes).contiguous();
}

}  // namespace holdfast::experiment
