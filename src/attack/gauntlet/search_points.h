// Where a search stands, sample by sample. It moves to points that harm no less: on the plateaus of a metric it wanders on.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "state.h"

namespace holdfast::attack::gauntlet {

class SearchPoints {
 public:
  explicit SearchPoints(const AttackState& state);  // at the best points so far

  // Moves to these points, one for each sample of the task, whatever they harm.
  void put(at::Tensor points);
  at::Tensor at(const Ledger::Owners& owners) const { return AttackState::rows_of(points_, owners); }
  // Moves to the worst of a sample's rows, unless that harms less than where it stands. `harm` as AttackState::harm().
  void move(const at::Tensor& points, const std::vector<double>& harm, const Ledger::Owners& owners);

 private:
  at::Tensor points_;         // [B, sample...]
  std::vector<double> harm_;  // lower is worse for the defender
};

}  // namespace holdfast::attack::gauntlet
