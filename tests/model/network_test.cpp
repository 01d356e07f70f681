#include "holdfast/model/network.h"

#include <thread>

#include <gtest/gtest.h>

#include "differences.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/activation.h"
#include "holdfast/model/model.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::model {
namespace {

using testing_support::mlp_network;
using testing_support::normal_tensor;

Network three_kinds_of_hinge() {
  using Kind = op::Activation::Kind;
  Network network;
  network.add("input", op::Input{});
  network.add("relu", op::Activation{Kind::kRelu});
  network.add("leaky", op::Activation{Kind::kLeakyRelu, 0.1}, {0});
  network.add("relu6", op::Activation{Kind::kRelu6}, {0});
  network.add("tanh", op::Activation{Kind::kTanh}, {0});
  network.add("all", op::Concat{}, {1, 2, 3, 4});
  return network;
}

TEST(SoftplusRule, TendsToTheExactNetworkAsBetaGrows) {
  const Network network = three_kinds_of_hinge();
  const at::Tensor x = at::linspace(-3, 9, 97, at::kDouble).unsqueeze(0);
  const at::Tensor exact = network.logits(x);
  double last = 1e9;
  for (const double beta : {1.0, 10.0, 100.0, 1e4, 1e7}) {
    const double distance = (network.run(x, Rule::softplus(beta)).logits - exact).abs().max().item<double>();
    // softplus lies above max(x, 0) by at most log(2) / beta, at the kink.
    EXPECT_LE(distance, std::log(2.0) / beta + 1e-12);
    EXPECT_LT(distance, last);
    last = distance;
  }
}

TEST(SoftplusRule, LeavesSmoothActivationsAlone) {
  const Network network = three_kinds_of_hinge();
  const at::Tensor x = normal_tensor({2, 5}, 3, at::kDouble);
  const at::Tensor smoothed = network.run(x, Rule::softplus(0.5)).logits;
  EXPECT_TRUE(at::equal(smoothed.narrow(1, 15, 5), at::tanh(x)));
}

TEST(SoftplusRule, TakesOneBetaForEachActivationInOrder) {
  const Network network = three_kinds_of_hinge();
  const at::Tensor x = normal_tensor({2, 5}, 3, at::kDouble);
  const at::Tensor each = network.run(x, {.softplus_beta = {1, 2, 3, 4}}).logits;
  for (int i = 0; i < 3; ++i) {
    const at::Tensor alone = network.run(x, Rule::softplus(i + 1)).logits;
    EXPECT_TRUE(at::equal(each.narrow(1, 5 * i, 5), alone.narrow(1, 5 * i, 5)));
  }
  EXPECT_ERROR(network.run(x, {.softplus_beta = {1, 2}}), kUsage, "2 values of beta, the network 4 activations");
  EXPECT_ERROR(network.run(x, Rule::softplus(0)), kUsage, "beta is 0; it must be above 0");
}

TEST(SoftplusRule, DifferentiatesTwice) {
  const Network network = three_kinds_of_hinge();
  const at::Tensor x = normal_tensor({2, 5}, 4, at::kDouble), weights = normal_tensor({2, 20}, 5, at::kDouble);
  testing_support::expect_two_derivatives(
      [&](const at::Tensor& at_x) { return (network.run(at_x, Rule::softplus(2)).logits * weights).sum(); }, x);
}

TEST(Softplus, IsRightToTheLastBitsWhereOverflowThreatens) {
  const op::Activation softplus = parse_activation("softplus(beta=1)");
  for (const double x : {-800.0, -50.0, -1.0, 0.0, 1.0, 19.0, 21.0, 36.0, 39.9, 40.1, 90.0, 800.0}) {
    // log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which never overflows.
    const double expected = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    const double value = activate(softplus, at::full({1}, x, at::kDouble)).item<double>();
    EXPECT_NEAR(value, expected, 1e-14 * std::max(expected, 1e-300)) << x;
    const double in_float = activate(softplus, at::full({1}, x, at::kFloat)).item<double>();
    EXPECT_NEAR(in_float, expected, 2e-7 * expected + 1e-38) << x;
  }
}

TEST(Softplus, HasTheLogisticFunctionAsDerivativeAndItsDerivativeAsSecond) {
  const at::Tensor x = at::linspace(-60, 60, 1201, at::kDouble).requires_grad_(true);
  const double beta = 0.7;
  const at::Tensor y = activate({op::Activation::Kind::kSoftplus, beta}, x);
  const at::Tensor first = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
  const at::Tensor second = torch::autograd::grad({first.sum()}, {x})[0];
  const at::Tensor logistic = at::sigmoid(beta * x.detach());
  EXPECT_TRUE(at::allclose(first, logistic, 1e-14, 1e-15));
  EXPECT_TRUE(at::allclose(second, beta * logistic * (1 - logistic), 1e-10, 1e-15));
}

TEST(Network, GivesPreActivationsInOrder) {
  const Network network = mlp_network({});
  const at::Tensor x = normal_tensor({4, 12}, 9);
  EXPECT_TRUE(network.run(x).pre_activations.empty());
  const RunResult result = network.run(x, {.keep_pre_activations = true});
  ASSERT_EQ(result.pre_activations.size(), 1u);
  const auto& hidden = std::get<op::Linear>(network.nodes()[1].operation);
  EXPECT_TRUE(at::equal(result.pre_activations[0], at::linear(x, hidden.weight, hidden.bias)));
  EXPECT_TRUE(at::equal(result.logits, network.logits(x)));
}

TEST(Network, CloneIsIndependentAndAssignmentShares) {
  const Network network = mlp_network({});
  const at::Tensor x = normal_tensor({4, 12}, 9), before = network.logits(x);
  const Network copy = network.clone(), shared = network;
  network.parameters()[0].tensor.mul_(2);
  EXPECT_TRUE(at::equal(copy.logits(x), before));
  EXPECT_TRUE(at::equal(shared.logits(x), network.logits(x)));
  EXPECT_FALSE(at::equal(network.logits(x), before));
}

TEST(Network, InDoubleIsTheSameFunction) {
  const Network network = architectures().make("siamese_gcn(nodes=6,hidden=5)")->build(3);
  const Network twin = network.to(at::kDouble);
  EXPECT_EQ(twin.dtype(), at::kDouble);
  const at::Tensor x = normal_tensor({3, 2, 15}, 4);
  EXPECT_TRUE(at::allclose(twin.logits(x.to(at::kDouble)).to(at::kFloat), network.logits(x), 1e-5, 1e-6));
}

TEST(Network, GradientsOfParametersAreOnRequestAndOnlyForTrainableOnes) {
  Network network = architectures().make("resnet9")->build(1);
  network.require_grad(true);
  for (const Parameter& parameter : network.parameters())
    EXPECT_EQ(parameter.tensor.requires_grad(), parameter.trainable) << parameter.name;
  network.require_grad(false);
  for (const Parameter& parameter : network.parameters()) EXPECT_FALSE(parameter.tensor.requires_grad());
}

// Two threads, one network, the same inputs: the same bytes as one thread alone.
TEST(Network, RunsSideBySideWithTheSameBytes) {
  const Network network = architectures().make("cnn_small")->build(1);
  const at::Tensor x = normal_tensor({16, 1, 28, 28}, 2);
  const auto gradient = [&] {
    const TileThread thread;
    const at::Tensor leaf = x.clone().requires_grad_(true);
    return torch::autograd::grad({network.run(leaf, Rule::softplus(5)).logits.square().sum()}, {leaf})[0];
  };
  const at::Tensor alone = gradient();
  std::vector<at::Tensor> together(2);
  std::vector<std::thread> threads;
  for (at::Tensor& result : together) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) result = gradient();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const at::Tensor& result : together) EXPECT_TRUE(at::equal(result, alone));
}

std::vector<Parameter> copied_parameters(const Network& network) {
  std::vector<Parameter> values = network.clone().parameters();
  return values;
}

TEST(NetworkLoad, CopiesValuesByName) {
  Network network = mlp_network({.seed = 1});
  const Network other = mlp_network({.seed = 2});
  std::vector<Parameter> values = copied_parameters(other);
  std::reverse(values.begin(), values.end());
  values.push_back({"hidden.num_batches_tracked", at::zeros({}, at::kLong)});
  network.load(values, "w.safetensors");
  const at::Tensor x = normal_tensor({4, 12}, 9);
  EXPECT_TRUE(at::equal(network.logits(x), other.logits(x)));
}

TEST(NetworkLoad, NamesWhatIsWrongAndChangesNothing) {
  Network network = mlp_network({});
  const at::Tensor x = normal_tensor({4, 12}, 9), before = network.logits(x);
  const auto with = [&](const std::function<void(std::vector<Parameter>&)>& change) {
    std::vector<Parameter> values = copied_parameters(mlp_network({.seed = 5}));
    change(values);
    return values;
  };
  EXPECT_ERROR(network.load(with([](auto& values) { values.pop_back(); }), "w.safetensors"), kInput,
               "w.safetensors: the model's out.bias of shape [2] is missing");
  EXPECT_ERROR(network.load(with([](auto& values) {
                              values.push_back({"out.wieght", at::zeros({2})});
                            }),
                            "w.safetensors"),
               kInput, "w.safetensors: the model has no out.wieght (did you mean 'out.weight'?)");
  EXPECT_ERROR(network.load(with([](auto& values) { values[3].tensor = at::zeros({3}); }), "w.safetensors"), kInput,
               "w.safetensors: out.bias has shape [3], the model needs [2]");
  EXPECT_ERROR(network.load(with([](auto& values) { values[3].tensor[1] = NAN; }), "w.safetensors"), kInput,
               "w.safetensors: out.bias holds a number that is not finite");
  EXPECT_ERROR(network.load(with([](auto& values) { values[3].tensor = at::zeros({2}, at::kInt); }), "w.safetensors"), kInput,
               "w.safetensors: out.bias does not hold floating-point numbers");
  EXPECT_TRUE(at::equal(network.logits(x), before));
}

Network small_norm_network() {
  Network network;
  network.add("input", op::Input{});
  network.add("bn", op::BatchNorm{normal_tensor({3}, 1, at::kDouble), normal_tensor({3}, 2, at::kDouble),
                                  at::zeros({3}, at::kDouble), at::ones({3}, at::kDouble)});
  return network;
}

TEST(BatchNorm, TrainingUsesTheBatchAndMovesTheRunningStatistics) {
  Network network = small_norm_network();
  const auto& norm = std::get<op::BatchNorm>(network.nodes()[1].operation);
  const at::Tensor x = normal_tensor({8, 3, 2, 2}, 5, at::kDouble) * 3 + 1;
  const at::Tensor by_channel = x.transpose(0, 1).flatten(1);
  const at::Tensor mean = by_channel.mean(1), variance = by_channel.var(1, /*unbiased=*/false);
  const auto view = [](const at::Tensor& values) { return values.view({1, 3, 1, 1}); };
  const at::Tensor expected = (x - view(mean)) / (view(variance) + 1e-5).sqrt() * view(norm.weight) + view(norm.bias);

  EXPECT_TRUE(at::allclose(network.run_training(x, 0), expected));
  EXPECT_TRUE(at::allclose(norm.mean, 0.1 * mean));
  EXPECT_TRUE(at::allclose(norm.variance, 0.9 + 0.1 * by_channel.var(1, /*unbiased=*/true)));
  EXPECT_ERROR(network.run_training(at::ones({1, 3}, at::kDouble), 0), kInput, "at least 2 samples");
}

// Against torch's own fused operation, through all pairs of (inputs, weight, bias).
TEST(BatchNorm, SecondDerivativesAreTorchsOwn) {
  const Network network = small_norm_network();
  const auto& norm = std::get<op::BatchNorm>(network.nodes()[1].operation);
  const at::Tensor x = normal_tensor({4, 3, 2, 2}, 5, at::kDouble).requires_grad_(true);
  const at::Tensor out = normal_tensor({4, 3, 2, 2}, 6, at::kDouble);
  const std::vector<at::Tensor> leaves = {x, norm.weight.requires_grad_(true), norm.bias.requires_grad_(true)};
  const auto derivatives = [&](const at::Tensor& y) {
    std::vector<at::Tensor> all = torch::autograd::grad({(y.sin() * out).sum()}, leaves, {}, true, true);
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (std::size_t i = 0; i < leaves.size(); ++i)
      sum = sum + (all[i] * normal_tensor(all[i].sizes(), 10 + i, at::kDouble)).sum();
    for (const at::Tensor& second : torch::autograd::grad({sum}, leaves)) all.push_back(second);
    return all;
  };
  const auto ours = derivatives(network.logits(x));
  const auto theirs = derivatives(at::batch_norm(x, norm.weight, norm.bias, norm.mean, norm.variance, false, 0.1, 1e-5, true));
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-9, 1e-12)) << i;
}

TEST(BatchNorm, ATrainingPassBetweenForwardAndBackwardDoesNoHarm) {
  Network network = small_norm_network();
  network.require_grad(true);
  const at::Tensor x = normal_tensor({4, 3}, 5, at::kDouble).requires_grad_(true);
  const at::Tensor weight = network.parameters()[0].tensor;
  const auto gradients = [&](bool between) {
    const at::Tensor y = network.logits(x).square().sum();
    if (between) network.run_training(x.detach(), 0);
    return torch::autograd::grad({y}, {x, weight});
  };
  const auto undisturbed = gradients(false), disturbed = gradients(true);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(undisturbed[i], disturbed[i]));
}

TEST(Dropout, IsKeyedBySeedAndKeepsTheMean) {
  Network network;
  network.add("input", op::Input{});
  network.add("drop", op::Dropout{.rate = 0.25});
  const at::Tensor x = at::ones({100, 100});
  const at::Tensor first = network.run_training(x, 1);
  EXPECT_TRUE(at::equal(first, network.run_training(x, 1)));
  EXPECT_FALSE(at::equal(first, network.run_training(x, 2)));
  EXPECT_TRUE(((first == 0) | (at::isclose(first, at::full({}, 4.0 / 3)))).all().item<bool>());
  EXPECT_NEAR((first == 0).to(at::kFloat).mean().item<double>(), 0.25, 5 * std::sqrt(0.25 * 0.75 / 1e4));
}

}  // namespace
}  // namespace holdfast::model
