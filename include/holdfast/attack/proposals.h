// Attacks that only propose points. What counts is decided here, as for every attack: points are brought into the threat model,
// explained, charged and judged, and the worst preserved one of every sample is kept (or the last, where that is asked for).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/attack.h"

namespace holdfast::attack {

class Proposals {
 public:
  virtual ~Proposals() = default;
  // The next point of every sample, [B, sample...]; nothing: it is over. `values` is the metric at the points before, NaN where
  // the prediction did not stay; empty at the first call.
  virtual std::optional<at::Tensor> next(const std::vector<double>& values) = 0;
  // Explanations, in evaluations a sample, that were made to find the points since the last call.
  virtual std::int64_t take_evaluations() { return 0; }
};

class ProposingAttack : public Attack {
 public:
  using Attack::Attack;
  virtual std::unique_ptr<Proposals> start(const AttackTask& task) const = 0;

  void check(const AttackTask& task) const override;
  AttackResult run(const AttackTask& task) const final;
};

}  // namespace holdfast::attack
