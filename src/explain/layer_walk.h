// One walk back over a network's nodes, for explainers that look at layers.
//
// A backward pass hands each node the cotangent of its value and asks for those of its operands. Gradients, DeepLIFT's
// multipliers, relevances and guided gradients differ only in how a node answers: a LayerRule. What a rule does not care about
// it leaves to the node's own vector-Jacobian product, `step.pull`.
//
// Everything is made of operations that autograd knows. With gradient mode on, the result of a walk is a function of the
// inputs (and of the weights) that can be differentiated again; with it off, no graph is made and `values` is used up.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast::explain {

// A network's values at some inputs. Holds a reference to the network.
struct LayerValues {
  const Network& network;
  std::vector<at::Tensor> values;  // one for each node
  std::vector<double> betas;       // for each node: the softplus rule's beta, 0 where the node stays as it is

  const at::Tensor& logits() const { return values.back(); }
};

// Runs the network at `inputs` [B, sample...] under the rule's surrogate. Walks need the graph of this run: it is made where
// the inputs require gradients, whatever the gradient mode.
LayerValues run_layers(const Network& network, const at::Tensor& inputs, const Rule& rule);

// A value from a run at one sample, to go with `like`, a value from a run at many. One row is left to broadcasting; two are the
// sides of one pair and are repeated.
at::Tensor beside(const at::Tensor& reference, const at::Tensor& like);

// One node of a walk.
class LayerStep {
 public:
  LayerStep(const LayerValues& here, std::size_t position, at::Tensor cotangent)
      : here_(here), position_(position), cotangent_(std::move(cotangent)) {}

  std::size_t position() const { return position_; }
  const Node& node() const { return here_.network.nodes()[position_]; }
  const at::Tensor& operand(std::size_t i = 0) const { return operand_of(here_, i); }
  const at::Tensor& value() const { return value_of(here_); }
  const at::Tensor& cotangent() const { return cotangent_; }

  // This node's operand or value in another run of the same network.
  const at::Tensor& operand_of(const LayerValues& run, std::size_t i = 0) const;
  const at::Tensor& value_of(const LayerValues& run) const { return run.values[position_]; }

  // The node's vector-Jacobian product at its operands: one tensor for each.
  std::vector<at::Tensor> pull(const at::Tensor& cotangent) const;
  // The beta of the softplus that stands in for the activation; 0 where none does.
  double beta() const { return here_.betas[position_]; }
  // The activation, or what stands in for it, at another point. Activations only.
  at::Tensor activate_at(const at::Tensor& x) const;

 private:
  const LayerValues& here_;
  std::size_t position_;
  at::Tensor cotangent_;
};

// The cotangents of the node's operands, in order.
using LayerRule = std::function<std::vector<at::Tensor>(const LayerStep&)>;

// From the last node to the first: the input's cotangent, given the logits'. What several nodes say of one value is added up.
at::Tensor walk_back(const LayerValues& here, const at::Tensor& cotangent, const LayerRule& rule);

// A function evaluated at variables of its own, each a copy of an operand, even where one was computed from another: for points
// and operations that the run's graph does not hold.
class LocalGraph {
 public:
  using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
  LocalGraph(const Function& function, const std::vector<at::Tensor>& operands);
  LocalGraph(const Operation& operation, const std::vector<at::Tensor>& operands);

  const at::Tensor& value() const { return value_; }
  // sum(cotangent * value) differentiated by each operand. Once, unless gradient mode is on.
  std::vector<at::Tensor> pull(const at::Tensor& cotangent) const;

 private:
  std::vector<at::Tensor> variables_;
  at::Tensor value_;
};

}  // namespace holdfast::explain
