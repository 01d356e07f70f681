#include "margin_writer.h"

#include <vector>

namespace holdfast::train {

void check_margin_fits(const std::string& objective, const Network& network, const Schema& schema, std::int64_t gates,
                       std::int64_t units_of_a_gate) {
  if (schema.layout.kind != Layout::Kind::kVector || schema.layout.sides != 1)
    usage_error("{}: the samples are a {}; it is for tables", objective, schema.layout.describe());
  std::vector<const op::Linear*> linear;
  bool known = true;
  for (const Node& node : network.nodes()) {
    const auto* layer = std::get_if<op::Linear>(&node.operation);
    const auto* activation = std::get_if<op::Activation>(&node.operation);
    if (layer != nullptr) linear.push_back(layer);
    const bool is_relu = activation != nullptr && activation->kind == op::Activation::Kind::kRelu;
    known = known && (layer != nullptr || is_relu || std::holds_alternative<op::Input>(node.operation));
  }
  const bool fits = known && (linear.size() == 1 || linear.size() == 2) && linear.back()->weight.size(0) == 2;
  if (!fits)
    usage_error("{}: needs two classes and one linear layer, or one hidden layer with relu, as mlp(hidden=32)", objective);
  const std::int64_t room = linear.size() == 2 ? linear[0]->weight.size(0) : 0;
  const std::int64_t needed = units_of_a_gate * gates + 1;
  if (gates > 0 && needed > room)
    usage_error("{}: {} gates need {} hidden units, and the network has {}", objective, gates, needed, room);
}

}  // namespace holdfast::train
