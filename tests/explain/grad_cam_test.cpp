#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "layer_case.h"
#include "support/errors.h"

namespace holdfast::explain {
namespace {

using testing_support::conv_network;
using testing_support::expect_near;
using testing_support::explain;
using testing_support::layer_model;
using testing_support::layer_task;
using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::normal_tensor;

TEST(GuidedBackprop, OfALinearModelIsTheGradient) {
  const at::Tensor weight = normal_tensor({3, 5}, 1, at::kDouble);
  const auto model = linear_model(weight, at::zeros({3}, at::kDouble));
  const ExplainTask task = layer_task(*model, normal_tensor({4, 5}, 2, at::kDouble));
  expect_near(explain("guided_backprop", task), weight.index_select(0, task.samples.targets), 1e-14);
}

// V a(W x + b): a unit passes its cotangent V_ch only where that is positive, times the activation's derivative.
TEST(GuidedBackprop, RectifiersPassPositiveCotangentsOnly) {
  using Kind = op::Activation::Kind;
  const at::Tensor inputs = normal_tensor({5, 6}, 3, at::kDouble);
  const auto maps_and_expected = [&](const op::Activation& activation, const auto& derivative, bool rectifies) {
    const auto model = mlp_model({.features = 6, .hidden = 9, .classes = 3, .activation = activation, .type = at::kDouble});
    const auto& first = std::get<op::Linear>(model->network()->nodes()[1].operation);
    const auto& last = std::get<op::Linear>(model->network()->nodes()[3].operation);
    const ExplainTask task = layer_task(*model, inputs);
    at::Tensor passed = last.weight.index_select(0, task.samples.targets);
    if (rectifies) passed = passed.clamp_min(0);
    const at::Tensor z = inputs.matmul(first.weight.t()) + first.bias;
    expect_near(explain("guided_backprop", task), (passed * derivative(z)).matmul(first.weight), 1e-12);
  };
  maps_and_expected(
      {Kind::kRelu}, [](const at::Tensor& z) { return (z > 0).to(at::kDouble); }, true);
  maps_and_expected(
      {Kind::kLeakyRelu, 0.2}, [](const at::Tensor& z) { return 0.2 + 0.8 * (z > 0).to(at::kDouble); }, true);
  maps_and_expected(
      {Kind::kSoftplus, 2}, [](const at::Tensor& z) { return (2 * z).sigmoid(); }, true);
  maps_and_expected(
      {Kind::kTanh}, [](const at::Tensor& z) { return 1 - z.tanh().square(); }, false);
}

// conv -> relu -> pool -> dense: the mean gradient of each channel times the channel, by the network's own derivatives.
at::Tensor cam_of(const Model& model, const ExplainTask& task, std::size_t node) {
  const at::AutoGradMode with_graph(true);
  const RunResult run = model.network()->run(task.samples.inputs.clone().requires_grad_(), {.keep_values = true});
  const at::Tensor chosen = run.logits.gather(1, task.samples.targets.unsqueeze(1)).sum();
  const at::Tensor gradient = torch::autograd::grad({chosen}, {run.values[node]})[0];
  return (gradient.mean({2, 3}, true) * run.values[node]).sum(1, true).detach();
}

TEST(GradCam, WeighsChannelsByTheirMeanGradient) {
  const auto model = make_model(conv_network({}, at::kDouble));
  const ExplainTask task = layer_task(*model, normal_tensor({3, 2, 5, 4}, 10, at::kDouble));
  const at::Tensor of_conv = cam_of(*model, task, 1), of_pool = cam_of(*model, task, 3);
  EXPECT_GT(of_conv.max().item<double>(), 0);
  EXPECT_LT(of_conv.min().item<double>(), 0);
  // The convolution keeps the image's size; both channels of the input get the same map.
  expect_near(explain("grad_cam", task), of_conv.relu().expand({3, 2, 5, 4}), 1e-12);
  expect_near(explain("grad_cam(relu=false)", task), of_conv.expand({3, 2, 5, 4}), 1e-12);
  // Pools halve it: 2 x 2 positions are brought back to 5 x 4.
  expect_near(explain("grad_cam(layer=pool,relu=false,interpolation=nearest)", task),
              at::upsample_nearest2d(of_pool, at::IntArrayRef{5, 4}).expand({3, 2, 5, 4}), 1e-12);
  expect_near(explain("grad_cam(layer=pool,relu=false)", task),
              at::upsample_bilinear2d(of_pool, at::IntArrayRef{5, 4}, false).expand({3, 2, 5, 4}), 1e-12);
  expect_near(explain("grad_cam(guided=true)", task), explain("grad_cam", task) * explain("guided_backprop", task), 1e-12);
}

// target=probability differs from a logit's map by a factor for each sample and class: its scale is kept apart, twice when
// guided.
TEST(GradCam, GuidedMapsOfAProbabilityAreInTrueUnits) {
  const auto model = make_model(conv_network({}, at::kDouble, 2));
  const ExplainTask task = layer_task(*model, normal_tensor({3, 2, 5, 4}, 11, at::kDouble));
  expect_near(explain("grad_cam(guided=true,target=probability)", task),
              explain("grad_cam(target=probability)", task) * explain("guided_backprop(target=probability)", task), 1e-12);
}

TEST(GradCam, OfAPairHasAMapForEachSide) {
  const auto model = layer_model("siamese_cnn(inputs=1x8x8)");
  const at::Tensor inputs = normal_tensor({3, 2, 1, 8, 8}, 12, at::kDouble);
  const at::Tensor maps = explain("grad_cam(relu=false)", layer_task(*model, inputs, at::zeros({3}, at::kLong)));
  EXPECT_EQ(maps.sizes(), inputs.sizes());
  // The sides are told apart: with the pair turned round the maps are too, since a distance does not feel the order.
  const at::Tensor turned = explain("grad_cam(relu=false)", layer_task(*model, inputs.flip(1), at::zeros({3}, at::kLong)));
  expect_near(turned.flip(1), maps, 1e-12);
  EXPECT_GT((turned - maps).abs().max().item<double>(), 1e-3 * maps.abs().max().item<double>());
}

TEST(GradCam, RefusesWhatHasNoConvolutionOrNoSuchLayer) {
  const auto dense = mlp_model();
  dense->set_name("mlp:weights.safetensors");
  EXPECT_ERROR(explainers().make("grad_cam")->check(*dense), kUsage,
               "grad_cam: needs a convolution; mlp:weights.safetensors has none");
  const auto model = make_model(conv_network({}, at::kDouble));
  EXPECT_ERROR(explainers().make("grad_cam(layer=cnov)")->check(*model), kUsage, "did you mean 'conv'?");
  const ExplainTask task = layer_task(*model, normal_tensor({2, 2, 5, 4}, 13, at::kDouble));
  EXPECT_ERROR((void)explainers().make("grad_cam(layer=flat)")->attribute(task), kUsage, "channels, rows and columns");
}

}  // namespace
}  // namespace holdfast::explain
