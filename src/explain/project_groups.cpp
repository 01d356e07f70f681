// On valid rows the columns of a one-hot group sum to 1. Adding a constant to all of a group's columns of a first-layer
// unit and taking it from the bias changes no prediction on any valid row, but changes the gradient: that part of it is
// a gauge, not information. The valid directions are orthogonal to each group's vector of ones.
#include <cmath>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

at::Tensor project_groups(const at::Tensor& maps, const Schema& schema) {
  if (schema.groups.empty()) return maps;
  const at::Tensor flat = maps.flatten(1);
  // One orthonormal column for each group.
  at::Tensor gauge = at::zeros({flat.size(1), static_cast<std::int64_t>(schema.groups.size())}, at::kDouble);
  auto entries = gauge.accessor<double, 2>();
  for (std::size_t group = 0; group < schema.groups.size(); ++group) {
    const std::vector<std::int64_t>& columns = schema.groups[group].columns;
    for (const std::int64_t column : columns) {
      HOLDFAST_CHECK(column >= 0 && column < flat.size(1));
      entries[column][static_cast<std::int64_t>(group)] = 1 / std::sqrt(static_cast<double>(columns.size()));
    }
  }
  gauge = gauge.to(maps.options().requires_grad(false));
  return (flat - flat.matmul(gauge).matmul(gauge.t())).view_as(maps);
}

}  // namespace holdfast::explain
