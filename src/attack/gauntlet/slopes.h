// What gauntlet's walks go down, for one row in plain loops: on the few features of a table a tensor operation costs more than a
// row's arithmetic. The slopes by tensor operations, in contrast_descent.cpp, gaps.cpp and threshold.cpp, are the reference; they
// say what is computed, and do it on other devices and for metrics of windows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace holdfast::attack::gauntlet::slopes {

// values <- the map's magnitudes, scaled so that the largest is 1; and slope <- slope times the map's signs.
void scale(std::span<const float> map, float* values);
void take_signs(std::span<const float> map, float* slope);

// The features' values are scaled so that the largest is 1. Each function fills `slope`, one number for each.
using Values = std::span<const float>;

// `top` and `near`: 1 on the clean top and on what is near it; `weights` of the features, or null. `scratch` is reused.
void contrast(Values values, std::int64_t k, const float* top, const float* near, const float* weights,
              std::vector<float>& scratch, float* slope);
void gaps(Values values, const float* weights, float* slope);
// `inside` and `outside`: weights of what is lowered and of what is raised. k is below the number of features.
void threshold(Values values, std::int64_t k, double temperature, const float* inside, const float* outside,
               std::vector<float>& scratch, float* slope);

}  // namespace holdfast::attack::gauntlet::slopes
