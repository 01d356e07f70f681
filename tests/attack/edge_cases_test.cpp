// Cases at the edge, for every attack: defined results or a clear sentence.
#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "attack_case.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/torch.h"
#include "support/errors.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::for_images;
using testing_support::linear_model;
using testing_support::mlp_network;
using testing_support::normal_tensor;

const std::vector<std::string> kCalls{"random(samples=10)",  "random_sign(steps=10)", "er(steps=10)",     "mse(steps=10)",
                                      "top_t(steps=10,t=4)", "mass_center(steps=10)", "target(steps=10)", "lens(steps=10,t=2)",
                                      "multi(steps=10,k=4)", "gauntlet(effort=light)"};

// Images of 3 x 4 pixels for all of them.
AttackCase image_case(Network network) {
  AttackCase test;
  test.model = make_model(for_images(network));
  test.schema = Schema::of(Layout::grid(1, 3, 4));
  test.inputs = normal_tensor({5, 1, 3, 4}, 90);
  test.ids = at::arange(5, at::kLong);
  test.threat = ThreatModel::make({.epsilons = {1}}, test.schema);
  return test;
}

Network linear_network(const at::Tensor& weight, const at::Tensor& bias) {
  return linear_model(weight, bias)->network()->clone();
}

class EdgeCases : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Attacks, EdgeCases, testing::ValuesIn(kCalls),
                         [](const auto& row) { return row.param.substr(0, row.param.find('(')); });

TEST(EdgeCaseTable, HasEveryAttack) {
  for (const MethodInfo* info : attacks().infos()) {
    if (info->name == "exact") continue;  // for chains of linear layers on vectors: exact_attack_test.cpp
    EXPECT_TRUE(std::any_of(kCalls.begin(), kCalls.end(), [&](const std::string& call) {
      return call.rfind(info->name + "(", 0) == 0;
    })) << info->name;
  }
}

// The gradient of a linear logit is the same everywhere: there is nothing to follow and nothing to find.
TEST_P(EdgeCases, ConstantExplanationsStay) {
  AttackCase test = image_case(linear_network(normal_tensor({3, 12}, 3), at::zeros({3})));
  test.explainer = "saliency(target=logit)";
  const AttackResult result = test.run(GetParam());
  for (const SampleOutcome& outcome : result.samples) {
    EXPECT_EQ(outcome.value, 1);
    EXPECT_EQ(outcome.first_swap, -1);
    EXPECT_EQ(outcome.iteration, 0);
  }
  EXPECT_TRUE(at::equal(result.perturbed, test.inputs));
}

// Maps that are zero everywhere: the net does not read its input.
TEST_P(EdgeCases, MapsOfZerosAreDefined) {
  AttackCase test = image_case(linear_network(at::zeros({2, 12}), torch::tensor({1.0f, 0.0f})));
  const AttackResult result = test.run(GetParam());
  for (const SampleOutcome& outcome : result.samples) EXPECT_EQ(outcome.value, 1);
  EXPECT_TRUE(at::equal(result.perturbed, test.inputs));
}

// Logits (0, 0) at the clean input: the lower class is predicted, without a margin. What is returned has one, or is the input.
TEST_P(EdgeCases, SamplesOnTheDecisionBoundaryKeepTheirClass) {
  AttackCase test = image_case(mlp_network({.classes = 2, .seed = 4}));
  const at::Tensor logits = test.model->logits(test.inputs);
  Network shifted = mlp_network({.classes = 2, .seed = 4});
  for (std::int64_t b = 0; b < 5; ++b) {
    AttackCase one = image_case(shifted);
    one.keep(b, b + 1);
    const at::Tensor margin = logits[b][0] - logits[b][1];
    one.model = make_model(
        [&, margin](const at::Tensor& x) {
          return test.model->logits(x) - at::stack({margin, at::zeros_like(margin)});
        },
        Capabilities{.layers = false}, at::kCPU);
    const bool surrogate = GetParam().find("top_t") == 0 || GetParam().find("lens") == 0 || GetParam().find("mass") == 0 ||
                           GetParam().find("target") == 0;
    const std::string call = surrogate ? GetParam().substr(0, GetParam().size() - 1) + ",surrogate=none)" : GetParam();
    const AttackResult result = one.run(call);
    EXPECT_NO_THROW(verify(*one.model, one.threat, one.inputs, result.perturbed, one.ids, call));
  }
}

TEST_P(EdgeCases, TheOnlyClassIsAlwaysKept) {
  AttackCase test = image_case(mlp_network({.classes = 1}));
  const AttackResult result = test.run(GetParam());
  for (const SampleOutcome& outcome : result.samples) {
    EXPECT_EQ(outcome.label_flips, 0);
    EXPECT_TRUE(std::isinf(outcome.margin));
  }
  EXPECT_NO_THROW(verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, GetParam()));
}

TEST_P(EdgeCases, ToleranceHolds) {
  AttackCase test = image_case(mlp_network({.classes = 3}));
  test.threat.tolerance = 0.02;
  const AttackResult result = test.run(GetParam());
  const Verification found = verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, GetParam());
  EXPECT_LE(found.largest_change, 0.02);
  test.threat.tolerance.reset();
  EXPECT_GT(verify(*test.model, test.threat, test.inputs, test.run(GetParam()).perturbed, test.ids, GetParam()).largest_change,
            0.02)
      << "it should matter here";
}

TEST_P(EdgeCases, GraphsAndSidesAreKept) {
  if (GetParam().find("mass_center") == 0 || GetParam().find("target") == 0) GTEST_SKIP() << "images only";
  AttackCase test;
  test.model = make_model(for_images(mlp_network({.features = 20})));
  test.schema = Schema::of(Layout::graph(5, 2));
  test.inputs = normal_tensor({6, 2, 10}, 91).clamp_min(0);
  test.ids = at::arange(6, at::kLong);
  test.threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {0.5}, .sides = Sides::kSecond}, test.schema);
  const AttackResult result = test.run(GetParam());
  EXPECT_GE(result.perturbed.min().item<double>(), 0);
  EXPECT_TRUE(at::equal(result.perturbed.select(1, 0), test.inputs.select(1, 0)));
  EXPECT_GT(verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, GetParam()).moved, 0);
}

}  // namespace
}  // namespace holdfast::attack
