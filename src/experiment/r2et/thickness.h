// Thickness and curvature as table 2 and figure 3 measure them, so that they share the cells.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "zoo.h"

namespace holdfast::r2et {

inline Job thickness_job(const ExperimentContext& context, const Setting& setting, const Member& member) {
  const bool few = context.quick() || (!setting.tabular && context.scale != Scale::kFull);
  CellSubject subject = subject_of(setting, member);
  if (few) subject.samples = std::min<std::int64_t>(subject.samples, 24);
  return measure_job(subject, fmt::format("thickness(k={}{})", setting.k, few ? ",endpoints=16,points=8" : ""), setting.epsilon,
                     context.seed);
}

inline std::vector<std::vector<double>> values_of(const std::vector<Json>& cells) {
  std::vector<std::vector<double>> values;
  for (const Json& cell : cells) values.push_back(numbers(cell.at("values")));
  return values;
}

}  // namespace holdfast::r2et
