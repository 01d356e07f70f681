#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "layer_case.h"
#include "support/errors.h"

namespace holdfast::explain {
namespace {

using testing_support::case_name;
using testing_support::expect_near;
using testing_support::explain;
using testing_support::layer_cases;
using testing_support::layer_model;
using testing_support::layer_task;
using testing_support::LayerCase;
using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::true_maps;

std::vector<std::int64_t> batch_of(std::int64_t count, std::vector<std::int64_t> sample) {
  sample.insert(sample.begin(), count);
  return sample;
}

// f(x) for the task's classes, written out.
at::Tensor explained(const Model& model, const at::Tensor& x, const at::Tensor& targets, const std::string& target) {
  const at::NoGradGuard no_graph;
  const at::Tensor column = targets.unsqueeze(1), logits = model.logits(x);
  if (target == "logit") return logits.gather(1, column).squeeze(1);
  const at::Tensor p = at::softmax(logits, 1).gather(1, column).squeeze(1);
  return target == "probability" ? p : -p.log();
}

// Logits W x + b: the multipliers of a logit are its weights; those of two classes' probability are the slope of the logistic
// function of the margin between both points.
TEST(DeepLift, OfALinearModelIsTheClosedForm) {
  const at::Tensor weight = normal_tensor({2, 5}, 1, at::kDouble), bias = normal_tensor({2}, 2, at::kDouble);
  const auto model = linear_model(weight, bias);
  const at::Tensor inputs = normal_tensor({4, 5}, 3, at::kDouble), base = normal_tensor({5}, 4, at::kDouble);
  ExplainTask task = layer_task(*model, inputs);
  task.samples.baseline = base;
  const at::Tensor own = weight.index_select(0, task.samples.targets), other = weight.index_select(0, 1 - task.samples.targets);
  expect_near(explain("deep_lift(target=logit,baseline=given)", task), own * (inputs - base), 1e-12);

  const at::Tensor shift =
      (bias.index_select(0, task.samples.targets) - bias.index_select(0, 1 - task.samples.targets)).unsqueeze(1);
  const at::Tensor margin = ((own - other) * inputs).sum(1, true) + shift, margin0 = ((own - other) * base).sum(1, true) + shift;
  const at::Tensor slope = (margin.sigmoid() - margin0.sigmoid()) / (margin - margin0);
  expect_near(explain("deep_lift(baseline=given)", task), slope * (own - other) * (inputs - base), 1e-12);
  const at::Tensor log_slope = -(margin.sigmoid().log() - margin0.sigmoid().log()) / (margin - margin0);
  expect_near(explain("deep_lift(target=ce,baseline=given)", task), log_slope * (own - other) * (inputs - base), 1e-12);
}

// V a(W x + b), unit by unit.
TEST(DeepLift, OfAHiddenLayerRescalesEachUnit) {
  const auto model = mlp_model({.features = 6, .hidden = 9, .classes = 3, .type = at::kDouble});
  const auto& nodes = model->network()->nodes();
  const auto& first = std::get<op::Linear>(nodes[1].operation);
  const auto& last = std::get<op::Linear>(nodes[3].operation);
  const at::Tensor inputs = normal_tensor({5, 6}, 4, at::kDouble);
  const ExplainTask task = layer_task(*model, inputs);
  const at::Tensor maps = explain("deep_lift(target=logit)", task);
  for (std::int64_t b = 0; b < 5; ++b) {
    const at::Tensor z = first.weight.mv(inputs[b]) + first.bias, z0 = first.bias;
    const at::Tensor slope = (z.relu() - z0.relu()) / (z - z0);
    const at::Tensor multipliers = (last.weight[task.samples.targets[b].item<std::int64_t>()] * slope).matmul(first.weight);
    expect_near(maps[b], multipliers * inputs[b], 1e-12);
  }
}

class DeepLiftOn : public testing::TestWithParam<LayerCase> {};

TEST_P(DeepLiftOn, MapsAddUpToTheDifference) {
  const auto model = layer_model(GetParam().architecture);
  const at::Tensor inputs = normal_tensor(batch_of(2, GetParam().sample), 40, at::kDouble).sigmoid();
  ExplainTask task = layer_task(*model, inputs);
  task.samples.baseline = normal_tensor(GetParam().sample, 41, at::kDouble).mul_(0.5).add_(0.3);
  const std::vector<std::pair<std::string, std::string>> options{{"logit", "given"}, {"probability", "zero"}, {"ce", "given"}};
  for (const auto& [target, baseline] : options) {
    const Explanation explanation =
        explainers().make("deep_lift(target=" + target + ",baseline=" + baseline + ")")->attribute(task);
    const at::Tensor base = baseline == "given" ? task.samples.baseline.expand_as(inputs) : at::zeros_like(inputs);
    const at::Tensor difference =
        explained(*model, inputs, task.samples.targets, target) - explained(*model, base, task.samples.targets, target);
    const at::Tensor maps = true_maps(explanation).flatten(1);
    const double size = maps.abs().sum(1).max().item<double>();
    EXPECT_GT(size, 1e-4);
    EXPECT_LE((maps.sum(1) - difference).abs().max().item<double>(), 1e-9 * size) << target << " from " << baseline;
    EXPECT_LE(explanation.delta.abs().max().item<double>(), 1e-9 * size);
  }
}

// ... in single precision too, and for the surrogate that was asked for.
TEST_P(DeepLiftOn, MapsOfASurrogateAddUpToItsDifference) {
  const auto exact = layer_model(GetParam().architecture);
  const auto model = make_model(exact->network()->to(at::kFloat));
  const at::Tensor inputs = normal_tensor(batch_of(1, GetParam().sample), 42, at::kFloat).sigmoid();
  ExplainTask task = layer_task(*model, inputs);
  task.rule = Rule::softplus(8);
  const at::NoGradGuard no_graph;
  const at::Tensor column = task.samples.targets.unsqueeze(1);
  const at::Tensor difference =
      (model->logits(inputs, task.rule) - model->logits(at::zeros_like(inputs), task.rule)).gather(1, column);
  const at::Tensor maps = explain("deep_lift(target=logit)", task).flatten(1);
  const double size = maps.abs().sum(1).max().item<double>();
  EXPECT_LE((maps.sum(1, true) - difference).abs().max().item<double>(), 1e-4 * size);
}

// Pixels that equal their baseline, windows whose maximum does not move, flat samples: nothing may divide by zero, nor may the
// derivative.
TEST_P(DeepLiftOn, IsFiniteWhereTheInputIsTheBaseline) {
  const auto model = layer_model(GetParam().architecture);
  at::Tensor inputs = normal_tensor(batch_of(2, GetParam().sample), 43, at::kDouble).sigmoid();
  inputs = inputs * (inputs > 0.5);  // half of it
  inputs[1].zero_();
  const ExplainTask task = layer_task(*model, inputs, at::zeros({2}, at::kLong));
  const auto here = explainers().make("deep_lift")->linearize(task);
  EXPECT_TRUE(at::isfinite(here->at().maps).all().item<bool>());
  EXPECT_EQ(here->at().maps[1].abs().max().item<double>(), 0) << "nothing moved";
  EXPECT_TRUE(at::isfinite(here->pullback(at::ones_like(inputs))).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Networks, DeepLiftOn, testing::ValuesIn(layer_cases()), case_name);

TEST(DeepLift, IsCompleteForEveryActivation) {
  using Kind = op::Activation::Kind;
  const at::Tensor inputs = normal_tensor({8, 6}, 50, at::kDouble).mul_(3);
  for (const auto& [kind, parameter] : std::vector<std::pair<Kind, double>>{{Kind::kRelu, 0},
                                                                            {Kind::kRelu6, 0},
                                                                            {Kind::kLeakyRelu, 0.1},
                                                                            {Kind::kSoftplus, 2},
                                                                            {Kind::kElu, 1},
                                                                            {Kind::kGelu, 0},
                                                                            {Kind::kSilu, 0},
                                                                            {Kind::kTanh, 0},
                                                                            {Kind::kSigmoid, 0}}) {
    const auto model = mlp_model({.features = 6, .classes = 3, .activation = {kind, parameter}, .type = at::kDouble});
    const Explanation explanation = explainers().make("deep_lift")->attribute(layer_task(*model, inputs));
    EXPECT_LE(explanation.delta.abs().max().item<double>(), 1e-12) << static_cast<int>(kind);
  }
}

// x (the gate) times W x: both factors move.
TEST(DeepLift, IsCompleteThroughProductsAndMagnitudes) {
  Network network;
  network.add("input", op::Input{});
  const int gate = network.add("gate", op::Activation{op::Activation::Kind::kSigmoid});
  const int mixed = network.add("mixed", op::Linear{normal_tensor({5, 5}, 60, at::kDouble), at::Tensor()}, {0});
  const int size = network.add("size", op::Abs{}, {mixed});
  network.add("gated", op::Product{}, {gate, size});
  network.add("out", op::Linear{normal_tensor({3, 5}, 61, at::kDouble), normal_tensor({3}, 62, at::kDouble)});
  const auto model = make_model(std::move(network));
  ExplainTask task = layer_task(*model, normal_tensor({4, 5}, 63, at::kDouble));
  task.samples.baseline = normal_tensor({5}, 64, at::kDouble);
  const Explanation explanation = explainers().make("deep_lift(baseline=given)")->attribute(task);
  EXPECT_LE(explanation.delta.abs().max().item<double>(), 1e-13);
}

// 3 x 3 windows with a stride of 1: one pixel is the maximum of several windows, and each of them counts. Values 9 and 7 at the
// input, 1 everywhere at the baseline, summed over the four windows of a 4 x 4 image.
TEST(DeepLift, AddsUpPoolingWindowsThatOverlap) {
  Network network;
  network.add("input", op::Input{});
  network.add("pool", op::MaxPool2d{.kernel = {3, 3}, .stride = {1, 1}});
  network.add("flat", op::Flatten{});
  network.add("out", op::Linear{torch::tensor({{1.0, 1.0, 1.0, 1.0}, {0.0, 0.0, 0.0, 0.0}}, at::kDouble), at::Tensor()});
  const auto model = make_model(std::move(network));
  at::Tensor image = at::ones({1, 1, 4, 4}, at::kDouble);
  image[0][0][1][1] = 7;  // in all four windows
  image[0][0][0][0] = 9;  // in the first alone
  ExplainTask task = layer_task(*model, image);
  task.samples.baseline = at::ones({1, 4, 4}, at::kDouble);
  const at::Tensor map = explain("deep_lift(target=logit,baseline=given)", task)[0][0];
  at::Tensor expected = at::zeros({4, 4}, at::kDouble);
  expected[0][0] = 8;
  expected[1][1] = 3 * 6;
  expect_near(map, expected, 1e-14);
}

TEST(DeepLift, KeepsTheScaleOfASaturatedSoftmaxApart) {
  const auto model = mlp_model({.features = 6, .classes = 3, .gain = 400});
  const auto exact = make_model(model->network()->to(at::kDouble));
  const at::Tensor inputs = normal_tensor({6, 6}, 70);
  ExplainTask task = layer_task(*model, inputs), reference = layer_task(*exact, inputs.to(at::kDouble), task.samples.targets);
  task.samples.baseline = inputs[0] * 1.01;
  reference.samples.baseline = task.samples.baseline.to(at::kDouble);
  const auto explainer = explainers().make("deep_lift(baseline=given)");
  const Explanation maps = explainer->attribute(task), close = explainer->attribute(reference);
  EXPECT_LT(close.log_scale.min().item<double>(), -100) << "a probability's multipliers would have underflown";
  EXPECT_TRUE(at::isfinite(maps.maps).all().item<bool>());
  expect_near(maps.maps, close.maps, 1e-2);
  EXPECT_LT((maps.log_scale - close.log_scale).abs().max().item<double>(), 0.1);
}

TEST(DeepLift, ABlurredBaselineMovesWithTheImage) {
  const auto model = layer_model("cnn_small(inputs=1x12x12,classes=4)");
  const at::Tensor inputs = normal_tensor({3, 1, 12, 12}, 71, at::kDouble);
  const Explanation explanation = explainers().make("deep_lift(baseline=blurred)")->attribute(layer_task(*model, inputs));
  EXPECT_LE(explanation.delta.abs().max().item<double>(), 1e-12);
  EXPECT_GT(explanation.maps.abs().max().item<double>(), 0);
}

TEST(LayerExplainers, RefuseAnOpaqueModelInOneSentence) {
  const auto opaque = make_model([](const at::Tensor& x) { return x; }, Capabilities{}, at::kCPU);
  opaque->set_name("model.pt");
  EXPECT_ERROR(explainers().make("deep_lift")->check(*opaque), kUsage,
               "deep_lift needs the layers of a network; model.pt is opaque");
  for (const char* call : {"lrp", "guided_backprop", "grad_cam"})
    EXPECT_ERROR(explainers().make(call)->check(*opaque), kUsage, "model.pt is opaque");
}

}  // namespace
}  // namespace holdfast::explain
