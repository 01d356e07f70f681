#include "holdfast/model/network.h"

#include <algorithm>
#include <array>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "operations.h"

namespace holdfast::model {

std::string operation_name(const Operation& operation) {
  static constexpr std::array kNames = {"input",
                                        "affine",
                                        "standardize",
                                        "reverse_channels",
                                        "linear",
                                        "conv2d",
                                        "batch_norm",
                                        "activation",
                                        "max_pool2d",
                                        "avg_pool2d",
                                        "adaptive_avg_pool2d",
                                        "mean",
                                        "pad",
                                        "slice",
                                        "add",
                                        "multiply",
                                        "concat",
                                        "flatten",
                                        "reshape",
                                        "fold_sides",
                                        "side_distance",
                                        "adjacency",
                                        "matmul",
                                        "dropout",
                                        "product",
                                        "abs",
                                        "select",
                                        "permute"};
  static_assert(kNames.size() == std::variant_size_v<Operation>);
  return kNames[operation.index()];
}

int Network::add(std::string name, Operation operation, std::vector<int> inputs) {
  const int position = static_cast<int>(nodes_.size());
  const bool is_input = std::holds_alternative<op::Input>(operation);
  HOLDFAST_CHECK(is_input == (position == 0));
  if (inputs.empty() && !is_input) inputs.push_back(position - 1);
  const int wanted = operand_count(operation);
  HOLDFAST_CHECK(wanted < 0 || inputs.size() == static_cast<std::size_t>(wanted));
  for (const int input : inputs) {
    HOLDFAST_CHECK(input >= 0 && input < position);
    last_reader_[static_cast<std::size_t>(input)] = position;
  }
  if (auto* adjacency = std::get_if<op::Adjacency>(&operation); adjacency != nullptr && !adjacency->index.defined()) {
    adjacency->index = adjacency_index(adjacency->nodes);
  }
  nodes_.push_back({std::move(name), std::move(operation), std::move(inputs)});
  last_reader_.push_back(position);
  return position;
}

int Network::activations() const {
  return static_cast<int>(std::count_if(nodes_.begin(), nodes_.end(),
                                        [](const Node& node) { return std::holds_alternative<op::Activation>(node.operation); }));
}

bool Network::scale_invariant() const {
  return nodes_.size() > 1 && std::all_of(nodes_.begin() + 1, nodes_.end(), [](const Node& node) {
           const bool reads_input = std::find(node.inputs.begin(), node.inputs.end(), 0) != node.inputs.end();
           return !reads_input || std::holds_alternative<op::Standardize>(node.operation);
         });
}

}  // namespace holdfast::model
