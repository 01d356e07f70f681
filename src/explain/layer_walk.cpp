#include "layer_walk.h"

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"
#include "holdfast/model/evaluate.h"

namespace holdfast::explain {
namespace {

// Gradients by `operands`; zeros where `value` does not depend on one.
std::vector<at::Tensor> gradients(const at::Tensor& value, const std::vector<at::Tensor>& operands, const at::Tensor& cotangent) {
  const bool again = at::GradMode::is_enabled();
  std::vector<at::Tensor> found = torch::autograd::grad({value}, operands, {cotangent}, /*retain_graph=*/again,
                                                        /*create_graph=*/again, /*allow_unused=*/true);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) found[i] = at::zeros_like(operands[i]);
  }
  return found;
}

void add_to(at::Tensor& sum, const at::Tensor& part) {
  sum = sum.defined() ? sum + part : part;
}

}  // namespace

LayerValues run_layers(const Network& network, const at::Tensor& inputs, const Rule& rule) {
  const at::AutoGradMode mode(at::GradMode::is_enabled() || inputs.requires_grad());
  LayerValues run{.network = network, .values = {}, .betas = std::vector<double>(network.nodes().size())};
  run.values = network.run(inputs, {.softplus_beta = rule.softplus_beta, .keep_values = true}).values;
  const std::vector<double>& betas = rule.softplus_beta;
  std::size_t next = 0;
  for (std::size_t i = 0; i < run.betas.size() && !betas.empty(); ++i) {
    if (!std::holds_alternative<op::Activation>(network.nodes()[i].operation)) continue;
    run.betas[i] = betas.size() == 1 ? betas.front() : betas[next++];
  }
  return run;
}

at::Tensor beside(const at::Tensor& reference, const at::Tensor& like) {
  if (reference.size(0) == 1 || reference.size(0) == like.size(0)) return reference;
  std::vector<std::int64_t> times(static_cast<std::size_t>(reference.dim()), 1);
  times[0] = like.size(0) / reference.size(0);
  return reference.repeat(times);
}

const at::Tensor& LayerStep::operand_of(const LayerValues& run, std::size_t i) const {
  return run.values[static_cast<std::size_t>(node().inputs[i])];
}

std::vector<at::Tensor> LayerStep::pull(const at::Tensor& cotangent) const {
  const std::size_t count = node().inputs.size();
  // The run's own graph lies between a value and its only operand. Where there are two, one may have been computed from the
  // other, and that graph would count the way round as well.
  if (count == 1) {
    if (value().is_same(operand())) return {cotangent};
    return gradients(value(), {operand()}, cotangent);
  }
  std::vector<at::Tensor> operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(operand(i));
  return LocalGraph(node().operation, operands).pull(cotangent);
}

at::Tensor LayerStep::activate_at(const at::Tensor& x) const {
  const auto& activation = std::get<op::Activation>(node().operation);
  return beta() > 0 ? activate_smoothed(activation, x, beta()) : activate(activation, x);
}

at::Tensor walk_back(const LayerValues& here, const at::Tensor& cotangent, const LayerRule& rule) {
  const std::vector<Node>& nodes = here.network.nodes();
  std::vector<at::Tensor> cotangents(nodes.size());
  cotangents.back() = cotangent;
  for (std::size_t i = nodes.size() - 1; i > 0; --i) {
    if (!cotangents[i].defined()) continue;  // nothing that was explained reads it
    const std::vector<at::Tensor> parts = rule(LayerStep(here, i, std::exchange(cotangents[i], {})));
    HOLDFAST_CHECK(parts.size() == nodes[i].inputs.size());
    for (std::size_t k = 0; k < parts.size(); ++k) add_to(cotangents[static_cast<std::size_t>(nodes[i].inputs[k])], parts[k]);
  }
  return cotangents[0].defined() ? cotangents[0] : at::zeros_like(here.values[0]);
}

LocalGraph::LocalGraph(const Function& function, const std::vector<at::Tensor>& operands) {
  const bool again = at::GradMode::is_enabled();
  const at::AutoGradMode with_graph(true);
  for (const at::Tensor& operand : operands) {
    // A view is a variable of its own; where no graph is wanted it is cut off from the operand's.
    const bool attached = again && operand.requires_grad();
    variables_.push_back(attached ? operand.view_as(operand) : operand.detach().requires_grad_());
  }
  value_ = function(variables_);
}

LocalGraph::LocalGraph(const Operation& operation, const std::vector<at::Tensor>& operands)
    : LocalGraph([&](const std::vector<at::Tensor>& at) { return evaluate_operation(operation, at); }, operands) {}

std::vector<at::Tensor> LocalGraph::pull(const at::Tensor& cotangent) const {
  return gradients(value_, variables_, cotangent);
}

}  // namespace holdfast::explain
