// What a sample is compared with: `baseline=zero|mean|blurred|given`.
//
// Where one-hot groups are projected, everything must stay on the rows whose groups sum to 1, since only there the gauge is
// not felt: a baseline's groups are moved to that sum by the same amount in each column. Zeros become 1/levels; valid rows and
// their means stay as they are.
#pragma once

#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/data/layout.h"
#include "holdfast/explain/blur.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

OptionSpec baseline_option();
OptionSpec blur_option();

// Moves each group's columns to sum 1; [B, ...] -> same.
at::Tensor with_group_sums(const at::Tensor& rows, const Schema& schema);

// A task's baseline.
struct Baseline {
  at::Tensor common;                   // [1, sample...]: the same for every sample; undefined where each has its own
  std::optional<Layout> blur = {};     // ... its own blurred image
  double deviation = 0;                // of the blur
  const Schema* valid_rows = nullptr;  // groups are moved to sum 1
  bool zero = false;                   // everywhere
  // Set: context stays as the input has it. Then `common` is undefined, since each sample has its own, and `row` has the rest.
  std::optional<Layout> context = {};
  at::Tensor row = {};

  // [1, sample...] or [B, sample...]; a function of `inputs` that autograd can differentiate.
  at::Tensor at(const at::Tensor& inputs) const;
};

// The options of one explainer; `name` is the explainer's, for messages.
class BaselineOption {
 public:
  BaselineOption(const Options& options, std::string name);
  // Throws kUsage when the task lacks what the baseline is made of, kInput when it has another shape.
  void check(const ExplainTask& task) const;
  // `project`: whether the task's one-hot groups are projected.
  Baseline of(const ExplainTask& task, bool project) const;

 private:
  std::string kind_, name_;
  double deviation_;
};

// Throws kUsage when the task has no background, kInput when its rows have another shape. `what` needs it.
void check_background(const ExplainTask& task, const std::string& what);

}  // namespace holdfast::explain
