// Small datasets and networks for the tests of training.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/train/trainer.h"

namespace holdfast::train {

// Two round clouds in six dimensions, their means two deviations apart in each of the first two. Every fifth sample is for
// validation, every fifth for test.
inline Dataset two_clouds(std::int64_t samples = 200, std::vector<std::int64_t> shape = {6}) {
  Dataset dataset;
  dataset.name = "two_clouds";
  dataset.schema = Schema::of(Layout::guess(shape));
  dataset.schema.classes = {"left", "right"};
  shape.insert(shape.begin(), samples);
  dataset.inputs = at::empty(shape);
  dataset.labels = at::empty({samples}, at::kLong);
  for (std::int64_t i = 0; i < samples; ++i) {
    RandomStream random(5, "two clouds", static_cast<std::uint64_t>(i));
    const std::int64_t label = i % 2;
    const at::Tensor flat = dataset.inputs[i].view(-1);
    for (std::int64_t j = 0; j < flat.numel(); ++j)
      flat[j] = random.normal() + (j < 2 ? 2.0 * static_cast<double>(label) - 1 : 0.0);
    dataset.labels[i] = label;
    (i % 5 == 3 ? dataset.validation : (i % 5 == 4 ? dataset.test : dataset.train)).push_back(i);
  }
  return dataset;
}

inline TrainOptions quick(std::int64_t epochs = 6) {
  return {.architecture = "mlp(hidden=8)",
          .epochs = epochs,
          .batch_size = 16,
          .learning_rate = 0.02,
          .threads = 1,
          .show_progress = false};
}

// Whether two networks hold the same bytes under the same names.
inline bool same_weights(const Network& a, const Network& b) {
  const auto left = a.parameters(), right = b.parameters();
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].name != right[i].name || !at::equal(left[i].tensor, right[i].tensor)) return false;
  }
  return true;
}

}  // namespace holdfast::train
