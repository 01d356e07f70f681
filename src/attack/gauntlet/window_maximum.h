// Finds, for every feature of a map, the largest value within a radius of it and its position.
#pragma once

#include <cstdint>
#include <utility>

#include <ATen/core/Tensor.h>

#include "holdfast/data/schema.h"

namespace holdfast::attack::gauntlet {

class WindowMaximum {
 public:
  // Radius 0: every feature is its own maximum.
  WindowMaximum(const Schema& schema, std::int64_t radius);

  // Takes features [rows, features] and gives values and positions of the same shape.
  std::pair<at::Tensor, at::Tensor> operator()(const at::Tensor& features) const;

  // Whether windows are looked at at all: not where their table would be too large.
  bool looks() const;

 private:
  bool is_grid() const;

  const Schema& schema_;
  std::int64_t radius_;
  at::Tensor table_;  // of layouts that are no grids
};

}  // namespace holdfast::attack::gauntlet
