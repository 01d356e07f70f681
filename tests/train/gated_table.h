// A table of numbers and categories for the tests of margins that are fitted at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "toy.h"

namespace holdfast::train {

// Three numbers, the last of five values, and two categories; the second category turns the effect of the first number round.
inline Dataset gated_table(std::int64_t samples = 600) {
  Dataset dataset;
  dataset.name = "gated_table";
  dataset.schema = Schema::of(Layout::vector(8));
  dataset.schema.features = {{.name = "a", .low = -3, .high = 3, .deviation = 1.0},
                             {.name = "b", .low = -3, .high = 3, .deviation = 1.0},
                             {.name = "c", .low = 0, .high = 1, .step = 0.25, .deviation = 0.35}};
  for (int i = 3; i < 8; ++i) dataset.schema.features.push_back({.name = fmt::format("level {}", i), .step = 1});
  dataset.schema.groups = {{.name = "x", .columns = {3, 4, 5}, .levels = {}}, {.name = "y", .columns = {6, 7}, .levels = {}}};
  dataset.schema.classes = {"no", "yes"};
  dataset.schema.describe_table();
  dataset.inputs = at::zeros({samples, 8});
  dataset.labels = at::zeros({samples}, at::kLong);
  for (std::int64_t i = 0; i < samples; ++i) {
    RandomStream random(9, "gated table", static_cast<std::uint64_t>(i));
    const double a = std::clamp(random.normal(), -3.0, 3.0), b = std::clamp(random.normal(), -3.0, 3.0);
    const auto c = static_cast<double>(random.below(5)) / 4;
    const auto x = static_cast<std::int64_t>(random.below(3)), y = static_cast<std::int64_t>(random.below(2));
    const double margin = (y == 0 ? 2 : -2) * a + b - c + (x == 1 ? 0.5 : 0);
    dataset.inputs[i][0] = a;
    dataset.inputs[i][1] = b;
    dataset.inputs[i][2] = c;
    dataset.inputs[i][3 + x] = 1;
    dataset.inputs[i][6 + y] = 1;
    dataset.labels[i] = random.uniform() < 1 / (1 + std::exp(-margin)) ? 1 : 0;
    (i % 5 == 3 ? dataset.validation : (i % 5 == 4 ? dataset.test : dataset.train)).push_back(i);
  }
  return dataset;
}

inline TrainResult fitted(const Dataset& dataset, const std::string& recipe, const std::string& architecture = "mlp(hidden=32)") {
  TrainOptions options = quick(1);
  options.architecture = architecture;
  options.recipe = recipe;
  return train_network(dataset, options);
}

inline at::Tensor margins(const Network& network, const at::Tensor& rows) {
  const at::NoGradGuard no_graph;
  const at::Tensor logits = network.logits(rows).to(at::kDouble);
  return logits.select(1, 1) - logits.select(1, 0);
}

}  // namespace holdfast::train
