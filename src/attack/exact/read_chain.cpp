#include "read_chain.h"

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack::exact {
namespace {

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
  return what_breaks_chain(network, [](const op::Activation& activation) {
    return activation.kind == op::Activation::Kind::kRelu || activation.kind == op::Activation::Kind::kLeakyRelu;
  });
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
