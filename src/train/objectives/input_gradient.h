// The gradient that explanations are made of, with its graph: where every term about explanations starts.
//
//     I(x) = d p_c(x) / dx       c the predicted class, p its softmax probability
// `target=ce` is the gradient of -log p_y by the label y instead, as in the code of R2ET's authors. Passes are those of
// evaluation (running statistics, no dropout), so that samples do not couple.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/logit_cotangent.h"
#include "holdfast/train/objective.h"

namespace holdfast::train {

struct ExplainedPoint {
  at::Tensor inputs;    // [B, sample...]; gradients by them can be taken
  at::Tensor logits;    // [B, classes]
  at::Tensor classes;   // [B], whose output is explained
  at::Tensor gradient;  // [B, sample...], signed, differentiable any number of times
};

class InputGradient {
 public:
  static OptionSpec target_option();
  static OptionSpec project_option();

  // Explains the output that `quantity`, or the option `target`, names.
  explicit InputGradient(ExplainedQuantity quantity) : quantity_(quantity) {}
  explicit InputGradient(const Options& options) : InputGradient(parse_explained_quantity(options.word("target"))) {}

  ExplainedQuantity quantity() const { return quantity_; }

  // Makes one forward pass and one input gradient.
  ExplainedPoint at(Trainee& trainee, const TrainBatch& batch) const;
  // Does the same at other inputs; without `classes` it explains the predicted ones.
  ExplainedPoint at(Trainee& trainee, const at::Tensor& inputs, at::Tensor classes) const;

  // Products of the Hessian of the explained output with vectors [B, P, sample...], differentiable: all of them in one
  // forward, one input gradient and one double backward of P copies of each sample.
  at::Tensor hessian_products(Trainee& trainee, const ExplainedPoint& point, const at::Tensor& vectors) const;

 private:
  ExplainedQuantity quantity_;
};

// The Hessian times one vector a sample, [B, sample...], from the graph of a point that was computed: one double backward.
// Without `create_graph` the product is a constant.
at::Tensor hessian_times(const ExplainedPoint& point, const at::Tensor& vectors, bool create_graph);

// The term that makes the model predict: from the pass that was made, where training and evaluation do not differ.
at::Tensor ce_term(Trainee& trainee, const TrainBatch& batch, const at::Tensor& logits);

// Whether ranks are made of projected gradients (project_groups): `project=auto|groups|none` of an objective.
class GroupProjection {
 public:
  explicit GroupProjection(const Options& options) : mode_(options.word("project")) {}
  // Throws kUsage when groups are asked for and the data has none.
  void check(const Schema& schema, const std::string& objective) const;
  at::Tensor project(const at::Tensor& gradient, const Schema& schema) const;

 private:
  std::string mode_;
};

// ||v|| of each sample, [B].
at::Tensor norms(const at::Tensor& vectors);
// One number a sample, [B], beside tensors [B, sample...].
at::Tensor per_sample(const at::Tensor& numbers, const at::Tensor& like);

}  // namespace holdfast::train
