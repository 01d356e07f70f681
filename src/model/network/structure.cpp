// What a network is made of, for those who can work with some structures only.
#include <fmt/core.h>

#include "holdfast/model/activation.h"
#include "holdfast/model/network.h"

namespace holdfast::model {
namespace {

// What may stand where: preprocessing in front, then linear layers and activations in turn.
enum class Place { kFront, kBehindLinear, kBehindActivation };

bool fits(const Operation& operation, Place place, const std::function<bool(const op::Activation&)>& takes) {
  if (is_one_of<op::Dropout>(operation)) return true;
  if (is_one_of<op::Linear>(operation)) return place != Place::kBehindLinear;
  if (is_one_of<op::Affine, op::Flatten>(operation)) return place == Place::kFront;
  const auto* activation = std::get_if<op::Activation>(&operation);
  return activation != nullptr && place == Place::kBehindLinear && takes(*activation);
}

}  // namespace

std::string node_in_words(const Node& node) {
  const auto* activation = std::get_if<op::Activation>(&node.operation);
  return fmt::format("{} at node '{}'", activation != nullptr ? to_string(*activation) : operation_name(node.operation),
                     node.name);
}

bool reads_the_node_before(const Network& network, std::size_t node) {
  return network.nodes()[node].inputs == std::vector<int>{static_cast<int>(node) - 1};
}

std::optional<std::string> what_breaks_chain(const Network& network, const std::function<bool(const op::Activation&)>& takes) {
  const std::vector<Node>& nodes = network.nodes();
  Place place = Place::kFront;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (!reads_the_node_before(network, i) || !fits(nodes[i].operation, place, takes)) return node_in_words(nodes[i]);
    if (is_one_of<op::Linear>(nodes[i].operation)) place = Place::kBehindLinear;
    if (is_one_of<op::Activation>(nodes[i].operation)) place = Place::kBehindActivation;
  }
  if (place != Place::kBehindLinear) return fmt::format("{} at the end", operation_name(nodes.back().operation));
  return std::nullopt;
}

}  // namespace holdfast::model
