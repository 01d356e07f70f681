// Lists, counts, loads and copies a network's parameters.
#include <algorithm>
#include <map>
#include <type_traits>
#include <variant>

#include <ATen/core/Tensor.h>

#include "holdfast/core/error.h"
#include "holdfast/core/method.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/network.h"

namespace holdfast::model {
namespace {

enum class TensorRole {
  kTrained,
  kStatistic,      // of batch normalisation
  kPreprocessing,  // set by an architecture's options
  kStructure,      // no value of the model's: never saved
};

// visit(suffix, tensor, role) for every tensor that is there. Names are PyTorch's.
template <class AnyOperation, class Visit>
void visit_tensors(AnyOperation& operation, const Visit& visit) {
  const auto if_defined = [&](const char* suffix, auto& tensor, TensorRole role) {
    if (tensor.defined()) visit(suffix, tensor, role);
  };
  std::visit(
      [&](auto& known) {
        using Known = std::remove_cvref_t<decltype(known)>;
        if constexpr (std::is_same_v<Known, op::Linear> || std::is_same_v<Known, op::Conv2d> ||
                      std::is_same_v<Known, op::BatchNorm>) {
          if_defined("weight", known.weight, TensorRole::kTrained);
          if_defined("bias", known.bias, TensorRole::kTrained);
        }
        if constexpr (std::is_same_v<Known, op::BatchNorm>) {
          if_defined("running_mean", known.mean, TensorRole::kStatistic);
          if_defined("running_var", known.variance, TensorRole::kStatistic);
        }
        if constexpr (std::is_same_v<Known, op::Affine>) {
          if_defined("scale", known.scale, TensorRole::kPreprocessing);
          if_defined("shift", known.shift, TensorRole::kPreprocessing);
        }
        if constexpr (std::is_same_v<Known, op::Adjacency>) if_defined("index", known.index, TensorRole::kStructure);
      },
      operation);
}

void check_value(const std::string& name, const at::Tensor& from, const at::Tensor& to, const std::string& where) {
  if (from.sizes() != to.sizes())
    input_error("{}: {} has shape {}, the model needs {}", where, name, holdfast::to_string(from.sizes().vec()),
                holdfast::to_string(to.sizes().vec()));
  if (!from.is_floating_point()) input_error("{}: {} does not hold floating-point numbers", where, name);
  if (!all_finite(from)) input_error("{}: {} holds a number that is not finite", where, name);
}

bool is_pytorch_counter(const std::string& name) {
  return name.ends_with(".num_batches_tracked");
}

// A copy of the network with every tensor passed through `convert`.
template <class Convert>
Network converted(const Network& network, const Convert& convert) {
  Network copy;
  for (const Node& node : network.nodes()) {
    Operation operation = node.operation;
    visit_tensors(operation, [&](const char*, at::Tensor& tensor, TensorRole) { tensor = convert(tensor.detach()); });
    copy.add(node.name, std::move(operation), node.inputs);
  }
  return copy;
}

// The network's first floating tensor: it says where and in what precision the network computes.
at::Tensor first_tensor(const Network& network) {
  at::Tensor first;
  for (const Node& node : network.nodes()) {
    visit_tensors(node.operation, [&](const char*, const at::Tensor& tensor, TensorRole role) {
      if (!first.defined() && role != TensorRole::kStructure) first = tensor;
    });
    if (first.defined()) break;
  }
  return first;
}

}  // namespace

std::vector<Parameter> Network::parameters() const {
  std::vector<Parameter> result;
  for (const Node& node : nodes_) {
    visit_tensors(node.operation, [&](const char* suffix, const at::Tensor& tensor, TensorRole role) {
      if (role != TensorRole::kStructure) result.push_back({node.name + "." + suffix, tensor, role == TensorRole::kTrained});
    });
  }
  return result;
}

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters()) count += parameter.trainable ? parameter.tensor.numel() : 0;
  return count;
}

void Network::require_grad(bool on) {
  for (Parameter& parameter : parameters()) {
    if (parameter.trainable) parameter.tensor.requires_grad_(on);
  }
}

void Network::load(const std::vector<Parameter>& values, const std::string& where) {
  std::map<std::string, at::Tensor> given;
  for (const Parameter& value : values) {
    if (!is_pytorch_counter(value.name)) given[value.name] = value.tensor;
  }
  std::vector<std::string> known;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // made when all is checked: an error leaves the network as it was
  for (Node& node : nodes_) {
    visit_tensors(node.operation, [&](const char* suffix, at::Tensor& tensor, TensorRole role) {
      if (role == TensorRole::kStructure) return;
      const std::string& name = known.emplace_back(node.name + "." + suffix);
      const auto found = given.find(name);
      if (found != given.end()) {
        check_value(name, found->second, tensor, where);
        copies.emplace_back(tensor, found->second);
        given.erase(found);
      } else if (role != TensorRole::kPreprocessing) {
        input_error("{}: the model's {} of shape {} is missing", where, name, holdfast::to_string(tensor.sizes().vec()));
      }
    });
  }
  if (!given.empty()) {
    const std::string& name = given.begin()->first;
    const std::string near = nearest(name, known);
    input_error("{}: the model has no {}{}", where, name, near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near));
  }
  const at::NoGradGuard no_gradients;
  for (auto& [to, from] : copies) to.copy_(from);
}

Network Network::clone() const {
  return converted(*this, [](const at::Tensor& tensor) { return tensor.clone(); });
}

Network Network::to(at::Device device) const {
  return converted(*this, [&](const at::Tensor& tensor) {
    return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  });
}

Network Network::to(at::ScalarType type) const {
  return converted(*this, [&](const at::Tensor& tensor) {
    return tensor.to(tensor.is_floating_point() ? type : tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  });
}

at::Device Network::device() const {
  const at::Tensor tensor = first_tensor(*this);
  return tensor.defined() ? tensor.device() : at::Device(at::kCPU);
}

at::ScalarType Network::dtype() const {
  const at::Tensor tensor = first_tensor(*this);
  return tensor.defined() ? tensor.scalar_type() : at::kFloat;
}

}  // namespace holdfast::model
