#include "endpoints.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"

namespace holdfast::measure {

void check_endpoints(const MeasureTask& task, const std::string& who) {
  const at::Tensor& given = task.endpoints;
  if (!given.defined()) usage_error("{}: no endpoints are given (--endpoints FILE)", who);
  const std::int64_t more = given.dim() - task.samples.inputs.dim();
  const bool fits = (more == 0 || more == 1) && given.size(0) == task.samples.inputs.size(0) &&
                    given.sizes().slice(1 + static_cast<std::size_t>(more)) == task.samples.inputs.sizes().slice(1);
  if (!fits) {
    input_error("{}: endpoints have shape {}, the inputs {}; one endpoint or several for each sample are expected", who,
                to_string(given.sizes().vec()), to_string(task.samples.inputs.sizes().vec()));
  }
}

std::int64_t endpoints_per_sample(const MeasureTask& task) {
  return task.endpoints.dim() > task.samples.inputs.dim() ? task.endpoints.size(1) : 1;
}

}  // namespace holdfast::measure
