// The tensors inside operations, each with its name and what it is for.
#pragma once

#include <type_traits>
#include <variant>

#include <ATen/core/Tensor.h>

#include "holdfast/model/network.h"

namespace holdfast {

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

}  // namespace holdfast
