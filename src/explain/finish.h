// What every explainer made of gradients offers beside its own options: which quantity is explained, signs, and the
// projection of one-hot groups.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/explainer.h"
#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain {

OptionSpec target_option(const char* fallback = "probability");
OptionSpec signed_option(bool fallback);
OptionSpec project_option();

// `project=auto|groups|none` of one explainer.
class Projection {
 public:
  // `name` is the explainer's, for messages.
  Projection(const Options& options, std::string name);

  // Whether this task's gradients are projected. Throws kUsage when groups are asked for and the data has none.
  bool applies(const ExplainTask& task) const { return applies(task.samples.schema.get()); }
  bool applies(const Schema* schema) const;
  // The gradient's part that valid rows can feel; explainers that multiply a gradient by the input project before they do.
  at::Tensor project(const at::Tensor& gradient, const ExplainTask& task) const;
  // [B]: share of the squared gradient that `project` takes away; undefined where nothing is projected.
  at::Tensor gauge_share(const at::Tensor& gradient, const ExplainTask& task) const;

 private:
  std::string mode_, name_;
};

}  // namespace holdfast::explain
