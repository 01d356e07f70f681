#include "noise.h"

#include <fmt/format.h>

#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {

Noise::Noise(const ExplainTask& task, std::string purpose, double deviation, bool project)
    : purpose_(std::move(purpose)),
      deviation_(deviation),
      groups_(project ? task.samples.schema.get() : nullptr),
      ids_(task.samples.ids),
      seed_(task.seed),
      shape_(task.samples.inputs.sizes().slice(1).vec()),
      options_(task.samples.inputs.options().requires_grad(false)) {
  if (task.samples.schema != nullptr) context_ = context_elements(task.samples.layout());
  if (context_.defined()) context_ = context_.to(options_.device());
}

at::Tensor Noise::rows(std::int64_t sample, std::int64_t samples, std::int64_t first, std::int64_t points) const {
  const at::Tensor ids = ids_.slice(0, sample, sample + samples);
  std::vector<at::Tensor> each;
  for (std::int64_t point = first; point < first + points; ++point)
    each.push_back(random_normal(shape_, ids, seed_, fmt::format("{}.{}", purpose_, point), options_.device()));
  at::Tensor noise = at::stack(each).to(options_).mul_(deviation_);
  if (context_.defined()) noise.masked_fill_(context_, 0);
  return groups_ == nullptr ? noise : project_groups(noise.flatten(0, 1), *groups_).view_as(noise);
}

}  // namespace holdfast::explain
