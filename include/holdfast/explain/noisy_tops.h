// How often each feature is in the top k of an explanation when Gaussian noise is added to the input: what smooth_top shows and
// smoothed_overlap certifies.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

struct NoisyTopsOptions {
  std::int64_t k = 8;
  double sigma = 0.1;          // deviation of the noise, in the units of the inputs
  std::int64_t copies = 1000;  // noisy copies of each sample
  std::string purpose = {};    // names the random streams: other draws for other purposes
};

// Counts over the copies of each sample, double, on the CPU.
struct NoisyTops {
  at::Tensor tops;     // [B, features]: copies in whose top k a feature is
  at::Tensor classes;  // [B, classes]: copies that are predicted as a class
};

// `of` is explained at x + sigma e, the explained class that of the task at every copy. Of features with equal values the lower
// one is on top. A copy whose map is not finite has no top. All samples' copies are cut into batches that fit task.memory.
NoisyTops count_noisy_tops(const ExplainTask& task, const Explainer& of, const NoisyTopsOptions& options);

}  // namespace holdfast::explain
