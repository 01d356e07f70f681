#include "representation.h"

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::measure {
namespace {

bool has_weights(const Node& node) {
  return std::holds_alternative<op::Linear>(node.operation) || std::holds_alternative<op::Conv2d>(node.operation);
}

std::size_t last_hidden(const Network& network, const std::string& who) {
  const std::vector<Node>& nodes = network.nodes();
  std::size_t last = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (has_weights(nodes[i])) last = static_cast<std::size_t>(nodes[i].inputs.at(0));
  }
  for (std::size_t i = 0; i <= last; ++i) {
    if (has_weights(nodes[i])) return last;
  }
  usage_error("{}: the network has no hidden layer; name a layer with layer=NAME", who);
}

std::size_t named(const Network& network, const std::string& layer, const std::string& who) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < network.nodes().size(); ++i) {
    if (network.nodes()[i].name == layer) return i;
    known.push_back(network.nodes()[i].name);
  }
  usage_error("{}: the network has no layer '{}'{}", who, layer, suggestion(layer, known));
}

}  // namespace

Representation::Representation(const Model& model, const std::string& layer, const std::string& who) : network_(model.network()) {
  if (network_ == nullptr)
    usage_error("{}: the model is opaque, its layers cannot be read; it needs a network of known operations", who);
  if (layer == "all") {
    for (std::size_t i = 1; i < network_->nodes().size(); ++i) nodes_.push_back(i);
  } else {
    nodes_.push_back(layer == "last" ? last_hidden(*network_, who) : named(*network_, layer, who));
  }
}

// Both sides of a pair go through a network as two rows after each other: they are values of one sample.
at::Tensor Representation::values(const at::Tensor& inputs) const {
  const at::NoGradGuard no_graph;
  const std::vector<at::Tensor> all = network_->run(inputs, {.keep_values = true}).values;
  std::vector<at::Tensor> chosen;
  for (const std::size_t node : nodes_) chosen.push_back(all[node].reshape({inputs.size(0), -1}));
  return chosen.size() == 1 ? chosen[0] : at::cat(chosen, 1);
}

}  // namespace holdfast::measure
