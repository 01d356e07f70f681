// Points that are given instead of drawn: MeasureTask::endpoints.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/measure/measure.h"

namespace holdfast::measure {

// Throws kUsage when there are none, kInput when they do not fit the inputs; `who` asks.
void check_endpoints(const MeasureTask& task, const std::string& who);
std::int64_t endpoints_per_sample(const MeasureTask& task);

}  // namespace holdfast::measure
