// Small models with closed forms, and random inputs for them.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/model.h"

namespace holdfast::testing_support {
using namespace model;

// A tensor of standard normal numbers that depends on `seed` alone.
inline at::Tensor normal_tensor(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type = at::kFloat) {
  at::Tensor values = at::empty(shape, at::kDouble);
  RandomStream stream(seed, "test");
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<double>()[i] = stream.normal();
  return values.to(type);
}

// Logits W x + b; weight [classes, features].
inline std::unique_ptr<Model> linear_model(const at::Tensor& weight, const at::Tensor& bias) {
  Network network;
  network.add("input", op::Input{});
  network.add("out", op::Linear{weight.clone(), bias.clone()});
  return make_model(std::move(network));
}

struct MlpShape {
  std::int64_t features = 12, hidden = 16, classes = 2;
  std::uint64_t seed = 1;
  op::Activation activation = {};
  double gain = 1;  // of the last layer: 100 saturates the softmax
  at::ScalarType type = at::kFloat;
};

inline Network mlp_network(const MlpShape& shape) {
  Network network;
  const auto weight = [&](std::int64_t out, std::int64_t in, std::uint64_t stream) {
    return normal_tensor({out, in}, shape.seed * 10 + stream, shape.type).mul_(1 / std::sqrt(static_cast<double>(in)));
  };
  network.add("input", op::Input{});
  network.add("hidden", op::Linear{weight(shape.hidden, shape.features, 0),
                                   normal_tensor({shape.hidden}, shape.seed * 10 + 1, shape.type).mul_(0.3)});
  network.add("act", shape.activation);
  network.add("out",
              op::Linear{weight(shape.classes, shape.hidden, 2).mul_(2 * shape.gain), at::zeros({shape.classes}, shape.type)});
  return network;
}

// Two channels of 5 x 4 pixels through a convolution, an activation and a pooling.
inline Network conv_network(const op::Activation& activation, at::ScalarType type, std::int64_t classes = 3) {
  Network network;
  network.add("input", op::Input{});
  network.add("conv", op::Conv2d{.weight = normal_tensor({4, 2, 3, 3}, 80, type).mul_(0.4),
                                 .bias = normal_tensor({4}, 81, type).mul_(0.3),
                                 .padding = {1, 1}});
  network.add("act", activation);
  network.add("pool", op::MaxPool2d{.kernel = {2, 2}, .stride = {2, 2}});
  network.add("flat", op::Flatten{});
  network.add("out", op::Linear{normal_tensor({classes, 16}, 82, type).mul_(0.5), at::zeros({classes}, type)});
  return network;
}

inline std::unique_ptr<Model> mlp_model(const MlpShape& shape = {}) {
  return make_model(mlp_network(shape));
}

inline op::Activation softplus(double beta) {
  return {op::Activation::Kind::kSoftplus, beta};
}

}  // namespace holdfast::testing_support
