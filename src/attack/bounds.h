#pragma once

#include "holdfast/attack/threat.h"
#include "rows.h"

namespace holdfast::attack {

// A threat model for row arithmetic; keeps the memory of the frozen elements alive. The threat model outlives it.
class HeldBounds {
 public:
  explicit HeldBounds(const ThreatModel& threat)
      : frozen_(threat.frozen.defined() ? threat.frozen.cpu().contiguous() : threat.frozen) {
    bounds_ = {.norm = threat.norm,
               .epsilon = threat.epsilon,
               .box = threat.box,
               .frozen = frozen_.defined() ? frozen_.data_ptr<bool>() : nullptr,
               .non_negative = threat.non_negative,
               .valid = threat.valid ? &*threat.valid : nullptr};
  }
  const rows::Bounds& operator*() const { return bounds_; }
  const rows::Bounds* operator->() const { return &bounds_; }

 private:
  at::Tensor frozen_;
  rows::Bounds bounds_;
};

// Rows and elements of a batch.
inline rows::Shape rows_of(const at::Tensor& batch) {
  return {batch.size(0), batch.size(0) == 0 ? 0 : batch.numel() / batch.size(0)};
}

}  // namespace holdfast::attack
