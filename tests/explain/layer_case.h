// Networks of many kinds, and tasks on them, for the tests of layer-wise explainers.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "explain_case.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "support/small_models.h"

namespace holdfast::testing_support {
using namespace explain;

inline ExplainTask layer_task(const Model& model, const at::Tensor& inputs, const at::Tensor& targets = {}) {
  const at::NoGradGuard no_graph;
  return {.model = model,
          .samples = {.inputs = inputs,
                      .targets = targets.defined() ? targets : predicted_class(model.logits(inputs)),
                      .ids = at::arange(inputs.size(0), at::kLong)}};
}

inline at::Tensor explain(const std::string& call, const ExplainTask& task) {
  return true_maps(explainers().make(call)->attribute(task));
}

inline void expect_near(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const double size = expected.abs().max().item<double>();
  EXPECT_LE((actual.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>(), tolerance * size);
}

struct LayerCase {
  std::string architecture;
  std::vector<std::int64_t> sample;
};

// resnet9 in small, with most other operations of published networks: batch normalisation behind convolutions and alone, residual
// sums, pools that overlap, concatenation, depthwise convolution, padding, slices.
inline Network residual_network() {
  Network network;
  const auto conv = [](std::int64_t in, std::int64_t out, std::int64_t groups = 1) {
    return op::Conv2d{.weight = at::empty({out, in / groups, 3, 3}, at::kDouble), .padding = {1, 1}, .groups = groups};
  };
  const auto norm = [](std::int64_t channels) {
    const at::Tensor ones = at::ones({channels}, at::kDouble), zeros = at::zeros({channels}, at::kDouble);
    return op::BatchNorm{ones.clone(), zeros.clone(), zeros.clone(), ones.clone()};
  };
  network.add("input", op::Input{});
  network.add("normalise", op::Affine{at::full({3}, 2.0, at::kDouble), at::full({3}, -0.9, at::kDouble)});
  network.add("bgr", op::ReverseChannels{});
  network.add("pad", op::Pad{.amounts = {0, 1, 0, 0}});
  network.add("conv1", conv(3, 6));
  network.add("bn1", norm(6));
  network.add("act1", op::Activation{});
  const int pooled = network.add("pool1", op::MaxPool2d{.kernel = {3, 3}, .stride = {2, 2}, .ceil_mode = true});
  network.add("bn2", norm(6));
  network.add("act2", op::Activation{});
  const int branch = network.add("conv2", conv(6, 6));
  const int sum = network.add("sum", op::Add{}, {branch, pooled});
  network.add("act3", op::Activation{});
  network.add("depthwise", conv(6, 6, 6));
  network.add("bn3", norm(6));
  const int deep = network.add("act4", op::Activation{op::Activation::Kind::kRelu6});
  const int half = network.add("half", op::Slice{.dim = 1, .start = 0, .stop = 3}, {sum});
  network.add("both", op::Concat{}, {deep, half});
  network.add("pool2", op::AvgPool2d{.kernel = {2, 2}, .stride = {2, 2}, .padding = {1, 1}});
  network.add("pool3", op::AdaptiveAvgPool2d{.size = {2, 1}});
  network.add("flat", op::Flatten{});
  network.add("scaled", op::Multiply{0.5});
  network.add("out", op::Linear{at::empty({4, 18}, at::kDouble), at::zeros({4}, at::kDouble)});
  return network;
}

// Dense, convolutional with pools, standardising, residual, with concatenations, with two sides, and of graphs.
inline const std::vector<LayerCase>& layer_cases() {
  static const std::vector<LayerCase> cases{
      {"mlp(inputs=9,hidden=12x10,classes=3,mean=0.3,deviation=0.5)", {9}},
      {"mlp(inputs=9,hidden=12x10,classes=3,activation=gelu)", {9}},
      {"cnn_small(inputs=1x12x12,classes=4)", {1, 12, 12}},
      {"cnn_chen(inputs=1x12x12,classes=4)", {1, 12, 12}},
      {"flower_resnet(inputs=3x12x12,classes=4)", {3, 12, 12}},
      {"residual", {3, 13, 12}},
      {"squeezenet1_0(inputs=3x31x31,classes=5)", {3, 31, 31}},
      {"siamese_cnn(inputs=1x8x8)", {2, 1, 8, 8}},
      {"siamese_gcn(nodes=7)", {2, 21}},
  };
  return cases;
}

// In double precision, with weights that neither shrink nor blow up what passes, and with biases and running statistics that are
// not zeros and ones.
inline std::unique_ptr<Model> layer_model(const std::string& architecture) {
  Network network =
      architecture == "residual" ? residual_network() : architectures().make(architecture)->build(5).to(at::kDouble);
  std::uint64_t stream = 500;
  for (const Parameter& parameter : network.parameters()) {
    const at::Tensor noise = normal_tensor(parameter.tensor.sizes(), ++stream, at::kDouble);
    at::Tensor tensor = parameter.tensor;
    if (parameter.name.ends_with(".weight") && tensor.dim() > 1)
      tensor.copy_(noise * std::sqrt(2.0 * static_cast<double>(tensor.size(0)) / static_cast<double>(tensor.numel())));
    if (parameter.name.ends_with(".bias") || parameter.name.ends_with(".running_mean")) tensor.add_(noise, 0.05);
    if (parameter.name.ends_with(".running_var")) tensor.mul_((0.2 * noise).exp());
  }
  return make_model(std::move(network));
}

inline std::string case_name(const testing::TestParamInfo<LayerCase>& info) {
  return info.param.architecture.substr(0, info.param.architecture.find('(')) + "_" + std::to_string(info.index);
}

}  // namespace holdfast::testing_support
