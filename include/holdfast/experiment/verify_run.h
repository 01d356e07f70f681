// Checks a finished audit: its files are those that it wrote, and rows recomputed from the model and the stored inputs say what
// results.json says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"

namespace holdfast::experiment {

struct RunVerification {
  std::int64_t files = 0;                 // whose digests were checked
  std::int64_t rows = 0, samples = 0;     // that were recomputed
  double largest_difference = 0;          // between a stored and a recomputed value of a metric
  std::vector<std::string> skipped = {};  // rows that could not be recomputed, and why
};

// Throws kInput naming the file, row or sample where the folder does not say what the model does: a changed file, a perturbed
// input outside its threat model, another predicted class, a value of the metric that is off by more than rounding.
RunVerification verify_run(const std::string& folder, at::Device device);

}  // namespace holdfast::experiment
