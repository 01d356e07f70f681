// What measures with bounds over a ball share: their option, their checks and how many samples fit the memory.
#pragma once

#include <string>

#include "bounds/ball_bounds.h"
#include "bounds/pair_bounds.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure {

OptionSpec smooth_project_option();

// Throws kUsage when the model has no such bounds, naming why.
void check_smooth(const MeasureTask& task, const std::string& name);
// ... and when a feature is the sum of several elements, whose magnitudes have no common derivative.
void check_one_element_a_feature(const Layout& layout, const std::string& name);

// Samples whose bounds and pairs fit the task's memory, at least 1; throws kUsage when not even one does.
std::int64_t samples_that_fit(const SmoothChain& chain, const MeasureTask& task, const PairChoice& pairs);

}  // namespace holdfast::measure
