// Descent of a function of the features of a map: magnitudes, channels summed, scaled so that the largest is 1. Signs are those
// of the present point, read anew at every step.
#pragma once

#include <span>
#include <vector>

#include "../walk.h"
#include "holdfast/data/layout.h"

namespace holdfast::attack::gauntlet {

// [rows, features] of maps [rows, sample...].
at::Tensor fold_features(const Layout& layout, const at::Tensor& maps);

class FeatureDescent : public Descent {
 public:
  explicit FeatureDescent(const Layout& layout) : layout_(layout) {}
  at::Tensor gradient(Linearization& here, const ExplainTask& at) final;
  void keep(const at::Tensor& rows) final;

 protected:
  // The derivative of what is lowered by each feature, [rows, features]; its size does not matter.
  virtual at::Tensor slope(const at::Tensor& features) = 0;
  // The same for one row in plain loops (slopes.h), where there is such a form: for tables on the processor.
  virtual bool has_rows() const { return false; }
  virtual void slope_of_row(std::int64_t, std::span<const float>, float*) {}
  // Tensors with one row for each row of the walk.
  virtual std::vector<at::Tensor*> state() = 0;

  const Layout layout_;

 private:
  at::Tensor cotangent_by_rows(const at::Tensor& maps);
};

}  // namespace holdfast::attack::gauntlet
