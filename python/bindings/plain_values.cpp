#include "plain_values.h"

#include "holdfast/core/torch.h"

namespace holdfast::python {

at::Tensor to_tensor(const std::vector<double>& values) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble);
}

std::vector<std::int64_t> to_vector(const at::Tensor& labels) {
  return {labels.const_data_ptr<std::int64_t>(), labels.const_data_ptr<std::int64_t>() + labels.numel()};
}

Json summary_of(const Assessment& assessment) {
  Json json = to_json(assessment);
  json.erase("values");
  return json;
}

}  // namespace holdfast::python
