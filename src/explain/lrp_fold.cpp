#include "lrp_fold.h"

#include <optional>

#include "holdfast/core/torch.h"

namespace holdfast::explain {
namespace {

// The layer followed by the normalisation, or nothing where it is no layer that can take it in.
std::optional<Operation> folded(const Operation& layer, const op::BatchNorm& norm) {
  at::Tensor scale = (norm.variance + norm.epsilon).rsqrt();
  if (norm.weight.defined()) scale = scale * norm.weight;
  const auto fold = [&](auto taken) -> Operation {
    std::vector<std::int64_t> one_a_row(static_cast<std::size_t>(taken.weight.dim()), 1);
    one_a_row[0] = -1;
    const at::Tensor shift = taken.bias.defined() ? taken.bias - norm.mean : -norm.mean;
    taken.weight = taken.weight * scale.view(one_a_row);
    taken.bias = norm.bias.defined() ? shift * scale + norm.bias : shift * scale;
    return taken;
  };
  if (const auto* conv = std::get_if<op::Conv2d>(&layer)) return fold(*conv);
  if (const auto* linear = std::get_if<op::Linear>(&layer)) {
    // The channels of a dense layer's output are its features only where it reads vectors, which the sizes tell.
    if (linear->weight.size(0) == norm.mean.size(0)) return fold(*linear);
  }
  return std::nullopt;
}

}  // namespace

Network fold_batch_norm(const Network& network) {
  const std::vector<Node>& nodes = network.nodes();
  std::vector<int> readers(nodes.size());
  for (const Node& node : nodes) {
    for (const int input : node.inputs) ++readers[static_cast<std::size_t>(input)];
  }
  // For each layer, the normalisation that goes into it.
  std::vector<std::optional<Operation>> replaced(nodes.size());
  std::vector<bool> gone(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const auto* norm = std::get_if<op::BatchNorm>(&nodes[i].operation);
    if (norm == nullptr) continue;
    const auto layer = static_cast<std::size_t>(nodes[i].inputs[0]);
    if (readers[layer] != 1) continue;
    replaced[layer] = folded(nodes[layer].operation, *norm);
    gone[i] = replaced[layer].has_value();
  }

  Network result;
  std::vector<int> moved(nodes.size());  // where each node's value is found now
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<int> inputs;
    for (const int input : nodes[i].inputs) inputs.push_back(moved[static_cast<std::size_t>(input)]);
    moved[i] = gone[i] ? inputs[0] : result.add(nodes[i].name, replaced[i].value_or(nodes[i].operation), inputs);
  }
  return result;
}

}  // namespace holdfast::explain
