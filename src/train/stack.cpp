#include "stack.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {
namespace {

bool is_chained(const Network& network) {
  for (std::size_t i = 1; i < network.nodes().size(); ++i) {
    if (network.nodes()[i].inputs != std::vector<int>{static_cast<int>(i) - 1}) return false;
  }
  return true;
}

bool is_stackable(const Node& node) {
  if (const auto* linear = std::get_if<op::Linear>(&node.operation)) return linear->weight.dim() == 2 && linear->bias.defined();
  return std::holds_alternative<op::Input>(node.operation) || std::holds_alternative<op::Affine>(node.operation) ||
         std::holds_alternative<op::Activation>(node.operation);
}

}  // namespace

bool can_stack(const Network& network) {
  return is_chained(network) && std::ranges::all_of(network.nodes(), is_stackable);
}

Network stack(const std::vector<Network>& networks) {
  HOLDFAST_CHECK(!networks.empty());
  Network result;
  for (std::size_t i = 0; i < networks.front().nodes().size(); ++i) {
    Node node = networks.front().nodes()[i];
    if (auto* linear = std::get_if<op::Linear>(&node.operation)) {
      std::vector<at::Tensor> weights, biases;
      for (const Network& network : networks) {
        const auto& own = std::get<op::Linear>(network.nodes()[i].operation);
        weights.push_back(own.weight.detach());
        biases.push_back(own.bias.detach());
      }
      *linear = {at::stack(weights), at::stack(biases)};
    }
    result.add(node.name, std::move(node.operation), node.inputs);
  }
  return result;
}

Network unstacked(const Network& stack, std::int64_t index) {
  Network result;
  for (Node node : stack.nodes()) {
    if (auto* linear = std::get_if<op::Linear>(&node.operation)) {
      *linear = {linear->weight.detach().select(0, index), linear->bias.detach().select(0, index)};
    }
    result.add(node.name, std::move(node.operation), node.inputs);
  }
  return result;
}

}  // namespace holdfast::train
