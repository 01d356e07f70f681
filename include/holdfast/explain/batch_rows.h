// How many rows one batch may have when an explainer runs a model at many points.
#pragma once

#include <cstdint>

#include "holdfast/core/stages.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

enum class Pass {
  kForward,   // logits alone
  kGradient,  // ... and their gradient by the inputs
  kPullback,  // ... and the gradient of that gradient
};

// Rows whose activations fit `task.memory`, at least 1. On a processor also no more than keeps a pass busy: beyond that rows only
// leave the cache. A property of the model, the shape of a sample and the memory alone, so that results do not depend on the
// machine. Networks are measured with one row, when this is made; for other models activations of 256 times a sample's bytes are
// assumed (VGG-16 and ResNet-50 have about 190 and 150 times).
class BatchRows {
 public:
  explicit BatchRows(const ExplainTask& task);
  std::int64_t most(Pass pass) const;
  // Whether all of `rows` can be held at once.
  bool all_fit(std::int64_t rows, Pass pass) const;

 private:
  std::int64_t rows_in(std::int64_t bytes, Pass pass) const;

  std::int64_t memory_, row_bytes_;
  std::int64_t busy_rows_;  // as many keep a pass busy; 0 on a device, which wants all that fit
  bool is_network_;
};

// `count` things in as few ranges of at most `most` as possible, of nearly the same size: the size of all but the last.
std::int64_t even_part(std::int64_t count, std::int64_t most);

}  // namespace holdfast::explain
