#include "published.h"

#include <cstdint>

namespace holdfast::attack {

// Kamath et al., "Rethinking Robustness of Model Attributions", AAAI 2024, and the code it builds on.
std::vector<Preset> lens_presets(bool with_t, const std::vector<std::pair<std::string, OptionValue>>& more) {
  struct Row {
    const char* name;
    double step;
    std::int64_t steps, t;
    const char* help;
  };
  const Row rows[] = {
      {"mnist", 0.01, 100, 200, "the LENS paper's on MNIST; its epsilon is linf 0.3, k 100"},
      {"fashion_mnist", 0.01, 100, 100, "the LENS paper's on Fashion-MNIST; its epsilon is linf 0.1, k 100"},
      {"gtsrb", 1.0 / 255, 50, 100, "the LENS paper's on GTSRB; its epsilon is linf 8/255 = 0.0314, k 100"},
      {"flower", 1.0 / 255, 100, 1000, "the LENS paper's on Flower; its epsilon is linf 8/255 = 0.0314, k 1000"},
      {"imagenet", 0.5 / 255, 300, 1000, "the LENS paper's on ImageNet; its epsilon is linf 1, 2, 4 or 8/255, k 1000"},
  };
  std::vector<Preset> presets;
  for (const Row& row : rows) {
    Preset preset{row.name, {{"steps", row.steps}, {"step_size", row.step}}, row.help};
    if (with_t) preset.values.emplace_back("t", row.t);
    preset.values.insert(preset.values.end(), more.begin(), more.end());
    presets.push_back(std::move(preset));
  }
  return presets;
}

// Chen et al., "Training for Stable Explanation for Free", NeurIPS 2024.
std::vector<Preset> r2et_presets() {
  return {{"tabular", {{"steps", std::int64_t{1000}}, {"step_size", 1e-3}}, "the paper's budget for tables"},
          {"cifar10",
           {{"steps", std::int64_t{100}}, {"step_size", 5e-2}},
           "the paper's budget for CIFAR-10, in units of normalised inputs: times their deviation for raw ones"},
          {"image",
           {{"steps", std::int64_t{100}}, {"step_size", 1e-2}},
           "the paper's budget for other images and for graphs, in units of normalised inputs: times their deviation for raw "
           "ones"}};
}

}  // namespace holdfast::attack
