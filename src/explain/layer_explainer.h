// What explainers that look at the layers of a network share: they refuse opaque models, and all they do follows from one
// differentiable computation, `trace`, of as many samples at a time as fit the task's memory.
#pragma once

#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

class LayerExplainer : public Explainer {
 public:
  using Explainer::Explainer;

  void check(const Model& model) const override;
  Explanation attribute(const ExplainTask& task) const override;
  std::unique_ptr<Linearization> linearize(const ExplainTask& task) const override;
  at::Tensor differentiable(const ExplainTask& task) const override;

 protected:
  // As in Explanation, with the graph of `maps` where gradient mode is on; delta and gauge_share are not differentiated.
  using Traced = Explanation;
  // `inputs` are the task's, as a variable. Gradient mode says whether the maps will be differentiated.
  virtual Traced trace(const ExplainTask& task, const Network& network, const at::Tensor& inputs) const = 0;
  // Throws kUsage when the network lacks what the explainer needs; `model` is its name for messages.
  virtual void check_network(const Network&, const std::string& /*model*/) const {}

 private:
  Explanation attribute_at_once(const ExplainTask& task) const;
};

}  // namespace holdfast::explain
