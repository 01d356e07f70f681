// Where a search stands, sample by sample. It moves to points that harm no less: on the plateaus of a metric it wanders on.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "arena.h"

namespace holdfast::gauntlet {

class Stand {
 public:
  explicit Stand(const Arena& arena);  // at the best points so far

  // To these points, one for each sample of the task, whatever they harm.
  void put(at::Tensor points);
  at::Tensor at(const Ledger::Owners& owners) const { return Arena::rows_of(points_, owners); }
  // To the worst of a sample's rows, unless that harms less than where it stands. `harm` as Arena::harm().
  void move(const at::Tensor& points, const std::vector<double>& harm, const Ledger::Owners& owners);

 private:
  at::Tensor points_;         // [B, sample...]
  std::vector<double> harm_;  // lower is worse for the defender
};

}  // namespace holdfast::gauntlet
