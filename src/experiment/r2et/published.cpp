// The numbers that the R2ET paper prints, as shares: tables 1 to 4 of Chen et al., "Training for Stable Explanation for Free".
#include <algorithm>
#include <array>

#include "zoo.h"

namespace holdfast::r2et {
namespace {

constexpr double kNone = -1;  // not reported

constexpr std::array kDatasets{"Adult", "Bank", "COMPAS", "MNIST", "CIFAR-10", "ADHD", "BP"};

struct Row {
  const char *column, *method;
  std::array<double, kDatasets.size()> values;
};

// clang-format off
constexpr Row kRows[] = {
    {"er", "Vanilla", {0.876, 0.83, 0.842, 0.59, 0.665, 0.455, 0.694}},
    {"er", "WD", {0.917, 0.824, 0.877, 0.591, 0.642, 0.476, 0.694}},
    {"er", "SP", {0.974, 0.954, 0.995, 0.629, 0.672, 0.425, 0.687}},
    {"er", "Est-H", {0.871, 0.784, 0.826, 0.852, 0.771, 0.582, 0.75}},
    {"er", "Exact-H", {0.896, 0.819, 0.772, kNone, kNone, kNone, kNone}},
    {"er", "SSR", {0.912, 0.763, 0.821, kNone, kNone, kNone, kNone}},
    {"er", "AT", {0.684, 0.8, 0.842, 0.56, 0.616, 0.594, 0.72}},
    {"er", "R2ET\\H", {0.975, 1, 0.91, 0.828, 0.673, 0.607, 0.709}},
    {"er", "R2ET-mm\\H", {0.935, 0.958, 0.953, 0.816, 0.777, 0.642, 0.724}},
    {"er", "R2ET", {0.921, 0.804, 0.92, 0.857, 0.75, 0.716, 0.715}},
    {"er", "R2ET-mm", {0.878, 0.751, 0.821, 0.853, 0.78, 0.588, 0.738}},
    {"mse", "Vanilla", {0.877, 0.94, 0.997, 0.64, 0.683, 0.811, 0.889}},
    {"mse", "WD", {0.918, 0.859, 0.994, 0.648, 0.656, 0.794, 0.886}},
    {"mse", "SP", {0.975, 0.955, 1, 0.669, 0.719, 0.813, 0.901}},
    {"mse", "Est-H", {0.872, 0.818, 0.977, 0.902, 0.787, 0.837, 0.914}},
    {"mse", "Exact-H", {0.897, 0.856, 0.96, kNone, kNone, kNone, kNone}},
    {"mse", "SSR", {0.926, 0.845, 0.972, kNone, kNone, kNone, kNone}},
    {"mse", "AT", {0.914, 0.884, 0.905, 0.639, 0.668, 0.81, 0.89}},
    {"mse", "R2ET\\H", {0.977, 1, 0.992, 0.897, 0.722, 0.868, 0.895}},
    {"mse", "R2ET-mm\\H", {0.936, 0.982, 0.972, 0.897, 0.794, 0.888, 0.91}},
    {"mse", "R2ET", {0.927, 0.905, 0.999, 0.908, 0.774, 0.913, 0.899}},
    {"mse", "R2ET-mm", {0.879, 0.854, 0.984, 0.914, 0.791, 0.875, 0.911}},
    {"thickness", "Vanilla", {0.9889, 0.9692, 0.9533, 0.9725, kNone, 0.9261, 0.9282}},
    {"thickness", "WD", {0.996, 0.9568, 0.9769, 0.9732, kNone, 0.9343, 0.9298}},
    {"thickness", "SP", {0.9983, 0.9978, 0.9999, 0.9771, kNone, 0.9316, 0.93}},
    {"thickness", "Est-H", {0.9875, 0.9583, 0.9557, 0.9948, kNone, 0.9578, 0.9356}},
    {"thickness", "Exact-H", {0.9932, 0.9521, 0.9382, kNone, kNone, kNone, kNone}},
    {"thickness", "SSR", {0.9934, 0.937, 0.9549, kNone, kNone, kNone, kNone}},
    {"thickness", "AT", {0.9372, 0.9473, 0.9168, 0.9639, kNone, 0.9597, 0.9342}},
    {"thickness", "R2ET\\H", {0.9989, 1, 0.9727, 0.9949, kNone, 0.9588, 0.9271}},
    {"thickness", "R2ET-mm\\H", {0.9963, 0.9874, 0.9906, 0.9942, kNone, 0.9622, 0.9342}},
    {"thickness", "R2ET", {0.997, 0.9344, 0.9865, 0.9949, kNone, 0.9731, 0.9296}},
    {"thickness", "R2ET-mm", {0.9943, 0.9102, 0.9544, 0.9948, kNone, 0.9588, 0.9356}},
    {"dffot", "Vanilla", {0.24, 0.23, 0.17, 0.37, kNone, 0.51, 0.4}},
    {"dffot", "WD", {0.45, 0.36, 0.29, 0.37, kNone, 0.49, 0.35}},
    {"dffot", "SP", {0.43, 0.35, 0.29, 0.38, kNone, 0.3, 0.38}},
    {"dffot", "Est-H", {0.44, 0.18, 0.27, 0.23, kNone, 0.59, 0.45}},
    {"dffot", "Exact-H", {0.43, 0.19, 0.3, kNone, kNone, kNone, kNone}},
    {"dffot", "SSR", {0.54, 0.46, 0.32, kNone, kNone, kNone, kNone}},
    {"dffot", "AT", {0.16, 0.19, 0.24, 0.4, kNone, 0.35, 0.46}},
    {"dffot", "R2ET\\H", {0.13, 0.34, 0.17, 0.23, kNone, 0.38, 0.43}},
    {"dffot", "R2ET-mm\\H", {0.42, 0.34, 0.25, 0.25, kNone, 0.37, 0.42}},
    {"dffot", "R2ET", {0.32, 0.11, 0.27, 0.18, kNone, 0.48, 0.42}},
    {"dffot", "R2ET-mm", {0.38, 0.12, 0.28, 0.19, kNone, 0.5, 0.45}},
    {"comp", "Vanilla", {0.43, 0.14, 0.37, 0.16, kNone, 0.05, 0.06}},
    {"comp", "WD", {0.47, 0.27, 0.41, 0.16, kNone, 0.06, 0.05}},
    {"comp", "SP", {0.47, 0.31, 0.45, 0.15, kNone, 0.1, 0.06}},
    {"comp", "Est-H", {0.44, 0.21, 0.42, 0.24, kNone, 0.04, 0.05}},
    {"comp", "Exact-H", {0.46, 0.14, 0.4, kNone, kNone, kNone, kNone}},
    {"comp", "SSR", {0.39, 0.04, 0.43, kNone, kNone, kNone, kNone}},
    {"comp", "AT", {0.14, 0.1, 0.1, 0.12, kNone, 0.1, 0.06}},
    {"comp", "R2ET\\H", {0.5, 0.32, 0.4, 0.22, kNone, 0.13, 0.07}},
    {"comp", "R2ET-mm\\H", {0.47, 0.41, 0.42, 0.22, kNone, 0.17, 0.07}},
    {"comp", "R2ET", {0.46, 0.24, 0.39, 0.26, kNone, 0.12, 0.07}},
    {"comp", "R2ET-mm", {0.48, 0.21, 0.44, 0.26, kNone, 0.04, 0.05}},
    {"suff", "Vanilla", {0.18, 0.04, 0.14, 0.23, kNone, 0.28, 0.29}},
    {"suff", "WD", {0.23, 0.07, 0.18, 0.22, kNone, 0.27, 0.33}},
    {"suff", "SP", {0.25, 0.07, 0.18, 0.22, kNone, 0.34, 0.3}},
    {"suff", "Est-H", {0.24, 0.06, 0.17, 0.18, kNone, 0.26, 0.24}},
    {"suff", "Exact-H", {0.23, 0.04, 0.18, kNone, kNone, kNone, kNone}},
    {"suff", "SSR", {0.21, 0.01, 0.18, kNone, kNone, kNone, kNone}},
    {"suff", "AT", {0.08, 0.03, 0.07, 0.28, kNone, 0.26, 0.25}},
    {"suff", "R2ET\\H", {0.14, 0.1, 0.17, 0.19, kNone, 0.37, 0.29}},
    {"suff", "R2ET-mm\\H", {0.22, 0.14, 0.17, 0.21, kNone, 0.37, 0.29}},
    {"suff", "R2ET", {0.19, 0.07, 0.17, 0.23, kNone, 0.26, 0.29}},
    {"suff", "R2ET-mm", {0.2, 0.08, 0.15, 0.22, kNone, 0.25, 0.29}},
    {"random_state", "Vanilla", {0.876, 0.83, 0.842, kNone, kNone, kNone, kNone}},
    {"random_state", "WD", {0.917, 0.824, 0.877, kNone, kNone, kNone, kNone}},
    {"random_state", "Est-H", {0.871, 0.784, 0.826, kNone, kNone, kNone, kNone}},
    {"random_state", "Exact-H", {0.896, 0.819, 0.772, kNone, kNone, kNone, kNone}},
    {"random_state", "SSR", {0.912, 0.763, 0.821, kNone, kNone, kNone, kNone}},
    {"random_state", "R2ET\\H", {0.975, 1, 0.919, kNone, kNone, kNone, kNone}},
    {"random_state", "R2ET-mm\\H", {0.935, 0.958, 0.953, kNone, kNone, kNone, kNone}},
    {"random_state", "R2ET", {0.921, 0.804, 0.92, kNone, kNone, kNone, kNone}},
    {"random_state", "R2ET-mm", {0.878, 0.751, 0.821, kNone, kNone, kNone, kNone}},
    {"retrained", "Vanilla", {0.876, 0.83, 0.842, kNone, kNone, kNone, kNone}},
    {"retrained", "WD", {0.883, 0.821, 0.827, kNone, kNone, kNone, kNone}},
    {"retrained", "CL", {0.931, 1, 0.871, kNone, kNone, kNone, kNone}},
    {"retrained", "Est-H", {0.921, 0.852, 0.851, kNone, kNone, kNone, kNone}},
    {"retrained", "Exact-H", {0.887, kNone, 0.87, kNone, kNone, kNone, kNone}},
    {"retrained", "SSR", {0.887, kNone, 0.861, kNone, kNone, kNone, kNone}},
    {"retrained", "R2ET\\H", {1, 1, 0.978, kNone, kNone, kNone, kNone}},
    {"retrained", "R2ET-mm\\H", {1, 0.983, 0.956, kNone, kNone, kNone, kNone}},
    {"retrained", "R2ET", {0.926, 0.862, 0.851, kNone, kNone, kNone, kNone}},
    {"retrained", "R2ET-mm", {0.916, 0.862, 0.874, kNone, kNone, kNone, kNone}},
};
// clang-format on

}  // namespace

std::optional<double> published(const std::string& column, const std::string& method, const std::string& dataset) {
  const auto place = std::find(kDatasets.begin(), kDatasets.end(), dataset);
  if (place == kDatasets.end()) return std::nullopt;
  for (const Row& row : kRows) {
    if (row.column != column || row.method != method) continue;
    const double value = row.values[static_cast<std::size_t>(place - kDatasets.begin())];
    return value == kNone ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

}  // namespace holdfast::r2et
