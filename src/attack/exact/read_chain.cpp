#include "read_chain.h"

#include <fmt/core.h>

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"

namespace holdfast::attack::exact {
namespace {

// What may stand where: preprocessing in front, then linear layers and activations in turn.
enum class Place { kFront, kBehindLinear, kBehindActivation };

bool passes(const Operation& operation, Place place) {
  if (is_one_of<op::Dropout>(operation)) return true;
  if (is_one_of<op::Linear>(operation)) return place != Place::kBehindLinear;
  if (is_one_of<op::Affine, op::Flatten>(operation)) return place == Place::kFront;
  const auto* activation = std::get_if<op::Activation>(&operation);
  return activation != nullptr && place == Place::kBehindLinear &&
         (activation->kind == op::Activation::Kind::kRelu || activation->kind == op::Activation::Kind::kLeakyRelu);
}

Eigen::VectorXd vector_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kCPU, at::kDouble).flatten().contiguous();
  return Eigen::Map<const Eigen::VectorXd>(plain.const_data_ptr<double>(), plain.numel());
}

Eigen::MatrixXd matrix_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(plain.const_data_ptr<double>(), plain.size(0), plain.size(1));
}

// One number for all elements, or one for each.
Eigen::VectorXd spread(const at::Tensor& tensor, Eigen::Index count) {
  const Eigen::VectorXd values = vector_of(tensor);
  return values.size() == 1 ? Eigen::VectorXd::Constant(count, values[0]) : values;
}

}  // namespace

std::optional<std::string> what_prevents(const Network& network) {
  Place place = Place::kFront;
  const std::vector<Node>& nodes = network.nodes();
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Operation& operation = nodes[i].operation;
    const auto* activation = std::get_if<op::Activation>(&operation);
    const bool follows = nodes[i].inputs == std::vector<int>{static_cast<int>(i) - 1};
    if (!follows || !passes(operation, place))
      return fmt::format("{} at node '{}'", activation != nullptr ? model::to_string(*activation) : operation_name(operation),
                         nodes[i].name);
    if (is_one_of<op::Linear>(operation)) place = Place::kBehindLinear;
    if (activation != nullptr) place = Place::kBehindActivation;
  }
  if (place != Place::kBehindLinear) return fmt::format("{} at the end", operation_name(nodes.back().operation));
  return std::nullopt;
}

Chain read_chain(const Network& network) {
  Chain chain{.layers = {}, .rounding = network.dtype() == at::kDouble ? 0x1p-53 : 0x1p-24};
  std::vector<const op::Affine*> front;
  for (const Node& node : network.nodes()) {
    if (const auto* affine = std::get_if<op::Affine>(&node.operation)) {
      front.push_back(affine);
    } else if (const auto* linear = std::get_if<op::Linear>(&node.operation)) {
      Chain::Layer layer{.weight = matrix_of(linear->weight), .bias = {}, .slope = 0, .weight_size = {}, .bias_size = {}};
      layer.bias = linear->bias.defined() ? vector_of(linear->bias) : Eigen::VectorXd::Zero(layer.weight.rows());
      layer.weight_size = layer.weight.cwiseAbs();
      layer.bias_size = layer.bias.cwiseAbs();
      // The last affine map is next to the layer: W (x s + t) + b = (W s) x + (b + W t).
      for (; !front.empty(); front.pop_back()) {
        const Eigen::VectorXd scale = spread(front.back()->scale, layer.weight.cols()),
                              shift = spread(front.back()->shift, layer.weight.cols());
        layer.bias += layer.weight * shift;
        layer.bias_size += layer.weight_size * shift.cwiseAbs();
        layer.weight = layer.weight * scale.asDiagonal();
        layer.weight_size = layer.weight_size * scale.cwiseAbs().asDiagonal();
      }
      chain.layers.push_back(std::move(layer));
    } else if (const auto* activation = std::get_if<op::Activation>(&node.operation)) {
      if (activation->kind == op::Activation::Kind::kLeakyRelu) chain.layers.back().slope = activation->parameter;
    }
  }
  HOLDFAST_CHECK(!chain.layers.empty());
  return chain;
}

}  // namespace holdfast::attack::exact
