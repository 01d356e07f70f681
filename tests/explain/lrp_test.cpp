#include <cmath>
#include <functional>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "holdfast/model/evaluate.h"
#include "layer_case.h"
#include "support/errors.h"

namespace holdfast::explain {
namespace {

using testing_support::expect_near;
using testing_support::explain;
using testing_support::layer_model;
using testing_support::layer_task;
using testing_support::linear_model;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::softplus;

constexpr double kEpsilon = 1e-6;

double kept_from_zero(double z) {
  return z >= 0 ? z + kEpsilon : z - kEpsilon;
}

// One layer's rule, as its definition reads: share(z_ij, sums) for each pair. weight [out, in].
using Vector = std::vector<double>;
struct Sums {
  double all = 0, plus = 0, minus = 0;
};
Vector hand_down(const at::Tensor& weight, const at::Tensor& bias, const Vector& a, const Vector& relevance,
                 const std::function<double(double, const Sums&)>& share) {
  const auto w = weight.accessor<double, 2>();
  Vector below(a.size());
  for (std::size_t j = 0; j < relevance.size(); ++j) {
    Sums sums;
    const auto add = [&](double z) {
      sums.all += z;
      (z > 0 ? sums.plus : sums.minus) += z;
    };
    const auto row = static_cast<std::int64_t>(j);
    if (bias.defined()) add(bias[row].item<double>());
    for (std::size_t i = 0; i < a.size(); ++i) add(a[i] * w[row][static_cast<std::int64_t>(i)]);
    for (std::size_t i = 0; i < a.size(); ++i)
      below[i] += share(a[i] * w[row][static_cast<std::int64_t>(i)], sums) * relevance[j];
  }
  return below;
}

double by_epsilon(double z, const Sums& sums) {
  return z / kept_from_zero(sums.all);
}
double by_gamma(double z, const Sums& sums) {
  constexpr double kGamma = 0.25;
  const bool up = sums.all >= 0;
  return (z + kGamma * (up ? std::max(z, 0.0) : std::min(z, 0.0))) /
         kept_from_zero(sums.all + kGamma * (up ? sums.plus : sums.minus));
}
double by_alpha_beta(double z, const Sums& sums) {
  constexpr double kAlpha = 2, kBeta = 1;
  return z > 0 ? kAlpha * z / kept_from_zero(sums.plus) : -kBeta * z / kept_from_zero(sums.minus);
}

Vector to_vector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// Inputs of both signs, biases, a net of two layers.
TEST(Lrp, RulesAreTheirDefinitionsWrittenOut) {
  const Network network = mlp_network({.features = 6, .hidden = 9, .classes = 3, .type = at::kDouble});
  const auto& first = std::get<op::Linear>(network.nodes()[1].operation);
  const auto& last = std::get<op::Linear>(network.nodes()[3].operation);
  at::Tensor last_bias = last.bias;
  last_bias.copy_(normal_tensor({3}, 5, at::kDouble));
  const auto model = make_model(network);
  const at::Tensor inputs = normal_tensor({5, 6}, 6, at::kDouble);
  const at::Tensor targets = torch::tensor({0, 1, 2, 0, 1}, at::kLong);  // logits of both signs
  const std::vector<std::pair<std::string, double (*)(double, const Sums&)>> rules{
      {"lrp(rule=epsilon)", by_epsilon}, {"lrp(rule=gamma)", by_gamma}, {"lrp(rule=alphabeta)", by_alpha_beta}};
  for (const auto& [call, share] : rules) {
    const at::Tensor maps = explain(call, layer_task(*model, inputs, targets));
    for (std::int64_t b = 0; b < 5; ++b) {
      const at::Tensor hidden = (first.weight.mv(inputs[b]) + first.bias).relu();
      const std::int64_t c = targets[b].item<std::int64_t>();
      Vector relevance(3);
      relevance[static_cast<std::size_t>(c)] = (last.weight[c].dot(hidden) + last.bias[c]).item<double>();
      relevance = hand_down(last.weight, last.bias, to_vector(hidden), relevance, share);
      const Vector map = hand_down(first.weight, first.bias, to_vector(inputs[b]), relevance, share);
      expect_near(maps[b], torch::tensor(map, at::kDouble), 1e-10);
    }
  }
}

TEST(Lrp, OfALinearModelIsTheContributionsAndTheBiasKeepsItsShare) {
  const at::Tensor weight = normal_tensor({3, 5}, 1, at::kDouble), bias = normal_tensor({3}, 2, at::kDouble);
  const auto model = linear_model(weight, bias);
  const ExplainTask task = layer_task(*model, normal_tensor({4, 5}, 3, at::kDouble));
  const at::Tensor contributions = weight.index_select(0, task.samples.targets) * task.samples.inputs;
  const at::Tensor kept = bias.index_select(0, task.samples.targets), total = contributions.sum(1) + kept;
  const auto absorbing = explainers().make("lrp(epsilon=1e-12)")->attribute(task);
  expect_near(absorbing.maps, contributions, 1e-10);
  expect_near(absorbing.delta, -kept, 1e-10);
  const auto ignoring = explainers().make("lrp(epsilon=1e-12,bias=ignore)")->attribute(task);
  expect_near(ignoring.maps, contributions * (total / contributions.sum(1)).unsqueeze(1), 1e-9);
  EXPECT_LT(ignoring.delta.abs().max().item<double>(), 1e-9);
}

// The box rule against its definition, and flat: each output's relevance in equal parts.
TEST(Lrp, FirstLayersRules) {
  const at::Tensor weight = normal_tensor({2, 4}, 11, at::kDouble);
  const auto model = linear_model(weight, at::zeros({2}, at::kDouble));
  const at::Tensor inputs = normal_tensor({3, 4}, 12, at::kDouble).sigmoid();
  const ExplainTask task = layer_task(*model, inputs);
  const at::Tensor own = weight.index_select(0, task.samples.targets);
  const at::Tensor logits = (own * inputs).sum(1, true);
  expect_near(explain("lrp(first=flat,epsilon=1e-12)", task), logits.expand({3, 4}) / 4, 1e-10);
  const at::Tensor inside = own * inputs + 0.5 * own.clamp_min(0) - 2 * own.clamp_max(0);  // low -0.5, high 2
  expect_near(explain("lrp(first=box,low=-0.5,high=2,epsilon=1e-12)", task), inside / inside.sum(1, true) * logits, 1e-10);
}

// A convolution is a dense layer with many equal weights: the same rules on its matrix must give the same maps.
TEST(Lrp, AConvolutionIsTheDenseLayerOfItsMatrix) {
  const op::Conv2d conv{.weight = normal_tensor({3, 2, 3, 3}, 21, at::kDouble),
                        .bias = normal_tensor({3}, 22, at::kDouble),
                        .stride = {2, 1},
                        .padding = {1, 0}};
  const at::Tensor basis = at::eye(2 * 5 * 4, at::kDouble).view({-1, 2, 5, 4});
  const at::Tensor shift = evaluate_operation(conv, {at::zeros({1, 2, 5, 4}, at::kDouble)}).flatten(1);
  const at::Tensor matrix = (evaluate_operation(conv, {basis}).flatten(1) - shift).t().contiguous();
  const op::Linear last{normal_tensor({3, matrix.size(0)}, 23, at::kDouble), normal_tensor({3}, 24, at::kDouble)};
  Network images, rows;
  images.add("input", op::Input{});
  images.add("conv", conv);
  images.add("act", op::Activation{});
  images.add("flat", op::Flatten{});
  images.add("out", last);
  rows.add("input", op::Input{});
  rows.add("flat", op::Flatten{});
  rows.add("dense", op::Linear{matrix, shift[0].contiguous()});
  rows.add("act", op::Activation{});
  rows.add("out", last);
  const auto convolutional = make_model(std::move(images)), dense = make_model(std::move(rows));
  const at::Tensor inputs = normal_tensor({4, 2, 5, 4}, 25, at::kDouble);
  for (const char* call : {"lrp(rule=epsilon)", "lrp(rule=gamma)", "lrp(rule=alphabeta,alpha=1.5)", "lrp(rule=gamma,bias=ignore)",
                           "lrp(rule=epsilon,first=box,low=-5,high=5)"}) {
    expect_near(explain(call, layer_task(*convolutional, inputs)), explain(call, layer_task(*dense, inputs)), 1e-9);
  }
  // Under the composite rule only the convolution takes gamma.
  const at::Tensor composite = explain("lrp", layer_task(*convolutional, inputs));
  EXPECT_GT((composite - explain("lrp(rule=gamma)", layer_task(*convolutional, inputs))).abs().max().item<double>(), 1e-6);
  expect_near(explain("lrp", layer_task(*dense, inputs)), explain("lrp(rule=epsilon)", layer_task(*dense, inputs)), 1e-12);
}

// With no bias in the sums nothing is lost: through pools, residual sums, concatenations, batch normalisation and preprocessing.
TEST(Lrp, ConservesRelevanceWhereBiasesHaveNone) {
  for (const auto& [architecture, sample] : testing_support::layer_cases()) {
    if (architecture.starts_with("siamese_gcn")) continue;  // loops of the graph are constants, and keep relevance
    const auto model = layer_model(architecture);
    std::vector<std::int64_t> shape = sample;
    shape.insert(shape.begin(), 1);
    const ExplainTask task = layer_task(*model, normal_tensor(shape, 40, at::kDouble).sigmoid());
    const at::Tensor logits = model->logits(task.samples.inputs).gather(1, task.samples.targets.unsqueeze(1)).squeeze(1);
    for (const char* rule : {"rule=epsilon", "rule=composite", "rule=gamma,first=flat"}) {
      if (architecture == "residual" && std::string(rule).ends_with("flat")) continue;  // its padding gets a share
      const auto explainer = explainers().make(std::string("lrp(bias=ignore,epsilon=1e-14,") + rule + ")");
      const Explanation explanation = explainer->attribute(task);
      const double size = explanation.maps.flatten(1).abs().sum(1).max().item<double>();
      EXPECT_GT(size, 1e-3);
      EXPECT_LE((explanation.maps.flatten(1).sum(1) - logits).abs().max().item<double>(), 1e-7 * size) << architecture << rule;
      EXPECT_LE(explanation.delta.abs().max().item<double>(), 1e-7 * size);
    }
  }
}

// z + y of a residual sum: each branch gets what it brought.
TEST(Lrp, ResidualSumsShareInProportion) {
  Network network;
  network.add("input", op::Input{});
  const at::Tensor weight = normal_tensor({4, 4}, 50, at::kDouble), out = normal_tensor({2, 4}, 51, at::kDouble);
  const int mixed = network.add("mixed", op::Linear{weight, at::Tensor()});
  network.add("sum", op::Add{}, {mixed, 0});
  network.add("out", op::Linear{out, at::Tensor()});
  const auto model = make_model(std::move(network));
  const ExplainTask task = layer_task(*model, normal_tensor({3, 4}, 52, at::kDouble));
  // All is linear: contributions of the whole matrix, whatever the way.
  const at::Tensor whole = out.matmul(weight + at::eye(4, at::kDouble)).index_select(0, task.samples.targets);
  expect_near(explain("lrp(rule=epsilon,epsilon=1e-13)", task), whole * task.samples.inputs, 1e-8);
}

// One unit: softplus(0) is a constant that counts as a bias; what is left goes on.
TEST(Lrp, AnActivationThatIsNotZeroAtZeroKeepsThatShare) {
  Network network;
  network.add("input", op::Input{});
  network.add("unit", op::Linear{torch::tensor({{2.0, -0.5}}, at::kDouble), at::Tensor()});
  network.add("act", softplus(1));
  network.add("out", op::Linear{torch::tensor({{3.0}, {0.0}}, at::kDouble), at::Tensor()});
  const auto model = make_model(std::move(network));
  const at::Tensor x = torch::tensor({{0.7, 0.4}}, at::kDouble);
  const double z = 2 * 0.7 - 0.5 * 0.4, constant = std::log(2.0), f = std::log1p(std::exp(z));
  const Explanation explanation = explainers().make("lrp(epsilon=1e-13)")->attribute(layer_task(*model, x));
  expect_near(explanation.maps, torch::tensor({{2 * 0.7, -0.5 * 0.4}}, at::kDouble) * (3 * (f - constant) / z), 1e-9);
  EXPECT_NEAR(explanation.delta.item<double>(), -3 * constant, 1e-9);
}

TEST(Lrp, RefusesWhatItCannotDoBeforeAnyWork) {
  const auto standardising = layer_model("flower_resnet(inputs=3x16x16,classes=3)");
  EXPECT_ERROR(explainers().make("lrp(first=box)")->check(*standardising), kUsage, "choose first=flat");
  EXPECT_ERROR((void)explainers().make("lrp(first=box,low=1,high=0)"), kUsage, "low must be below high");
  EXPECT_ERROR((void)explainers().make("lrp(alpha=0.5)"), kUsage, "alpha");
  const auto model = testing_support::mlp_model({.features = 4, .type = at::kDouble});
  Schema schema = Schema::of(Layout::vector(4));
  schema.groups = {{.name = "sex", .columns = {2, 3}, .levels = {}}};
  ExplainTask task = layer_task(*model, normal_tensor({2, 4}, 60, at::kDouble));
  task.samples.schema = share_schema(schema);
  EXPECT_ERROR(explainers().make("lrp(rule=gamma)")->check_task(task), kUsage, "use project=none");
  EXPECT_ERROR(explainers().make("lrp(bias=ignore)")->check_task(task), kUsage, "use project=none");
  EXPECT_NO_THROW(explainers().make("lrp(rule=gamma,project=none)")->check_task(task));
  EXPECT_NO_THROW(explainers().make("lrp")->check_task(task));
}

}  // namespace
}  // namespace holdfast::explain
