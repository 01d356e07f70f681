// Gaussian noise of an explainer's points: row (point, sample) is drawn from the stream of the sample's id and the point, so it
// is the same in any block, tile or pullback.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

class Noise {
 public:
  // `purpose` names the streams; `project`: groups' sums of the noise are 0, so that rows keep theirs.
  Noise(const ExplainTask& task, std::string purpose, double deviation, bool project);
  // [points, samples, sample...] for the points `first` .. and the task's samples `sample` ..; on the task's device, in its
  // precision.
  at::Tensor rows(std::int64_t sample, std::int64_t samples, std::int64_t first, std::int64_t points) const;

 private:
  std::string purpose_;
  double deviation_;
  const Schema* groups_;  // null: not projected
  at::Tensor context_;    // elements without noise; undefined: there are none
  at::Tensor ids_;
  std::uint64_t seed_;
  std::vector<std::int64_t> shape_;
  at::TensorOptions options_;
};

}  // namespace holdfast::explain
