#pragma once

#include "holdfast/attack/threat.h"
#include "rows.h"

namespace holdfast {

// A threat model for row arithmetic; keeps the memory of the frozen elements alive.
class HeldBounds {
 public:
  explicit HeldBounds(const ThreatModel& threat)
      : frozen_(threat.frozen.defined() ? threat.frozen.cpu().contiguous() : threat.frozen) {
    bounds_ = {threat.norm, threat.epsilon, threat.box, frozen_.defined() ? frozen_.data_ptr<bool>() : nullptr};
  }
  const rows::Bounds& operator*() const { return bounds_; }
  const rows::Bounds* operator->() const { return &bounds_; }

 private:
  at::Tensor frozen_;
  rows::Bounds bounds_;
};

}  // namespace holdfast
