#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "explain_case.h"
#include "holdfast/explain/logit_cotangent.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::apart;
using testing_support::explained;
using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::softplus;
using testing_support::true_maps;
using testing_support::whole_task;

constexpr const char* kRules[] = {"right", "left", "middle", "trapezoid", "gauss"};

std::string call(const std::string& rule, int steps, const std::string& more = "") {
  return "integrated_gradients(steps=" + std::to_string(steps) + ",rule=" + rule + more + ")";
}

// Every rule's weights sum to 1, so a linear logit is explained exactly: w (x - b).
TEST(IntegratedGradients, OfALinearLogitIsTheClosedFormUnderEveryRule) {
  const at::Tensor weight = normal_tensor({3, 5}, 1, at::kDouble);
  const auto model = linear_model(weight, normal_tensor({3}, 2, at::kDouble));
  ExplainTask task = whole_task(*model, normal_tensor({4, 5}, 3, at::kDouble));
  task.samples.baseline = normal_tensor({5}, 4, at::kDouble);
  const at::Tensor slopes = weight.index_select(0, task.samples.targets);
  for (const char* rule : kRules) {
    EXPECT_LT(apart(explained(call(rule, 7, ",target=logit"), task), slopes * task.samples.inputs), 1e-13) << rule;
    EXPECT_LT(apart(explained(call(rule, 7, ",target=logit,baseline=given"), task),
                    slopes * (task.samples.inputs - task.samples.baseline)),
              1e-13)
        << rule;
    EXPECT_LT(explainers().make(call(rule, 7, ",target=logit"))->attribute(task).delta.abs().max().item<double>(), 1e-12) << rule;
  }
}

// Logits (sum x^3, 0): the integral from zero is x^3 element by element, and Gauss with 2 points is exact for its integrand t^2.
TEST(IntegratedGradients, OfACubicIsExactWithTwoGaussPoints) {
  const auto model = make_model(
      [](const at::Tensor& x) {
        const at::Tensor cubes = x.pow(3).sum(1, true);
        return at::cat({cubes, at::zeros_like(cubes)}, 1);
      },
      Capabilities{}, at::kCPU);
  ExplainTask task = whole_task(*model, normal_tensor({3, 4}, 5, at::kDouble));
  task.samples.targets = at::zeros({3}, at::kLong);
  EXPECT_LT(apart(explained(call("gauss", 2, ",target=logit"), task), task.samples.inputs.pow(3)), 1e-14);
  // The right rule's sum of squares: (m+1)(2m+1) / (2 m^2) times the integral.
  EXPECT_LT(apart(explained(call("right", 4, ",target=logit"), task), task.samples.inputs.pow(3) * 45 / 32), 1e-14);
  EXPECT_LT(apart(explained(call("middle", 4, ",target=logit"), task), task.samples.inputs.pow(3) * (1 - 1.0 / 64)), 1e-14);
  EXPECT_LT(apart(explained(call("trapezoid", 5, ",target=logit"), task), task.samples.inputs.pow(3) * (1 + 1.0 / 32)), 1e-14);
}

// A plain loop over points, with torch's own softmax.
TEST(IntegratedGradients, IsTheLoopOverItsPoints) {
  const auto model = mlp_model({.features = 6, .classes = 3, .type = at::kDouble});
  ExplainTask task = whole_task(*model, normal_tensor({5, 6}, 6, at::kDouble));
  task.samples.background = normal_tensor({9, 6}, 7, at::kDouble);
  const at::Tensor baseline = task.samples.background.mean(0);
  at::Tensor sum = at::zeros_like(task.samples.inputs);
  for (int k = 1; k <= 8; ++k) {
    const at::Tensor z = (baseline + k / 8.0 * (task.samples.inputs - baseline)).requires_grad_();
    const at::Tensor p = at::softmax(model->logits(z), 1).gather(1, task.samples.targets.unsqueeze(1)).sum();
    sum += torch::autograd::grad({p}, {z})[0] / 8;
  }
  EXPECT_LT(apart(explained(call("right", 8, ",baseline=mean"), task), (task.samples.inputs - baseline) * sum), 1e-12);
}

TEST(IntegratedGradients, DeltaIsWhatTheSumMissesAndShrinksWithSteps) {
  const auto model = mlp_model({.features = 6, .classes = 3, .activation = softplus(2), .type = at::kDouble});
  const ExplainTask task = whole_task(*model, normal_tensor({5, 6}, 8, at::kDouble));
  for (const char* target : {"probability", "logit", "ce"}) {
    const std::string more = std::string(",target=") + target;
    const at::Tensor coarse = explainers().make(call("right", 10, more))->attribute(task).delta.abs().max();
    const at::Tensor fine = explainers().make(call("right", 1000, more))->attribute(task).delta.abs().max();
    EXPECT_GT(coarse.item<double>(), 20 * fine.item<double>()) << target;
    EXPECT_GT(fine.item<double>(), 1e-7) << target;
    EXPECT_LT(explainers().make(call("gauss", 40, more))->attribute(task).delta.abs().max().item<double>(), 1e-10) << target;
  }
}

// In float32 the probability's gradient underflows at most points of the path, and all the change happens at a few.
TEST(IntegratedGradients, AddsUpAndRanksWhereTheSoftmaxSaturates) {
  const auto exact = mlp_model({.features = 6, .activation = softplus(2), .gain = 400, .type = at::kDouble});
  const auto model = mlp_model({.features = 6, .activation = softplus(2), .gain = 400});
  const at::Tensor inputs = normal_tensor({6, 6}, 9, at::kDouble).mul_(2);
  const ExplainTask single = whole_task(*model, inputs.to(at::kFloat));
  ExplainTask reference = whole_task(*exact, inputs);
  reference.samples.targets = single.samples.targets;
  for (const char* name : {"integrated_gradients(steps=300,rule=middle)", "integrated_gradients(steps=20,baseline=given)"}) {
    ExplainTask here = single, there = reference;
    here.samples.baseline = (inputs[0] * 0.9).to(at::kFloat);
    there.samples.baseline = inputs[0] * 0.9;
    const at::Tensor found = explainers().make(name)->attribute(here).maps.to(at::kDouble);
    const at::Tensor expected = explainers().make(name)->attribute(there).maps;
    for (std::int64_t b = 0; b < 6; ++b) {
      ASSERT_GT(found[b].abs().max().item<double>(), 0) << name;
      EXPECT_LT(apart(found[b] / found[b].norm(), expected[b] / expected[b].norm()), 2e-3) << name << " sample " << b;
    }
  }
  // The first sample of the second case goes from 0.9 x to x: saturated all along, beyond float32.
  ExplainTask here = single;
  here.samples.baseline = (inputs[0] * 0.9).to(at::kFloat);
  EXPECT_LT(explainers().make("integrated_gradients(steps=20,baseline=given)")->attribute(here).log_scale[0].item<double>(),
            -100);
}

class ScaleInvariance : public testing::TestWithParam<const char*> {};

TEST_P(ScaleInvariance, ShortcutIsTheLongWay) {
  const auto architecture = architectures().make(GetParam());
  const auto model = make_model(architecture->build(3).to(at::kDouble), architecture->layout());
  ASSERT_TRUE(model->capabilities().scale_invariant);
  std::vector<std::int64_t> shape = architecture->layout().sample_shape();
  shape.insert(shape.begin(), 2);
  const ExplainTask task = whole_task(*model, normal_tensor(shape, 10, at::kDouble).mul_(0.1).add_(0.5));
  for (const char* rule : {"right", "middle", "gauss"}) {
    const auto quick = explainers().make(call(rule, 6)), slow = explainers().make(call(rule, 6, ",shortcut=off"));
    const Explanation one = quick->attribute(task), all = slow->attribute(task);
    EXPECT_LT(apart(true_maps(one), true_maps(all)), 1e-9) << rule;
    EXPECT_TRUE(at::allclose(one.logits, all.logits));
    EXPECT_TRUE(at::allclose(one.delta, all.delta, 1e-7, 1e-9)) << rule;
  }
  const at::Tensor cotangent = normal_tensor(shape, 11, at::kDouble);
  const at::Tensor quick = explainers().make(call("right", 3))->linearize(task)->pullback(cotangent);
  EXPECT_LT(apart(quick, explainers().make(call("right", 3, ",shortcut=off"))->linearize(task)->pullback(cotangent)), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Networks, ScaleInvariance, testing::Values("gtsrb_resnet", "flower_resnet"),
                         [](const auto& test) { return std::string(test.param); });

// H_m x dF/dx for the right rule; and the rules whose first point is the zero image have no shortcut.
TEST(IntegratedGradients, ShortcutsFactorIsTheHarmonicNumber) {
  const auto architecture = architectures().make("gtsrb_resnet");
  const auto model = make_model(architecture->build(4), architecture->layout());
  const ExplainTask task = whole_task(*model, normal_tensor({2, 3, 32, 32}, 12).mul_(0.1).add_(0.5));
  double harmonic = 0;
  for (int k = 1; k <= 100; ++k) harmonic += 1.0 / k;
  EXPECT_LT(apart(explained(call("right", 100), task), harmonic * explained("input_x_gradient", task)), 1e-6);
  for (const char* rule : {"left", "trapezoid"})
    EXPECT_LT(apart(explained(call(rule, 3), task), explained(call(rule, 3, ",shortcut=off"), task)), 1e-6) << rule;
}

// Under projection the path must stay where groups sum to 1: a zero baseline is 1/levels there, and maps still add up.
TEST(IntegratedGradients, ZeroBaselinesOfGroupsAreUniform) {
  const auto model = mlp_model({.features = 6, .classes = 3, .activation = softplus(2), .type = at::kDouble});
  Schema schema = Schema::of(Layout::vector(6));
  schema.groups = {{.name = "colour", .columns = {1, 2, 4}, .levels = {}}};
  at::Tensor inputs = normal_tensor({3, 6}, 13, at::kDouble);
  for (const std::int64_t column : schema.groups[0].columns) inputs.select(1, column).fill_(column == 2 ? 1 : 0);
  ExplainTask task = whole_task(*model, inputs);
  task.samples.schema = share_schema(schema);
  task.samples.baseline = at::zeros({6}, at::kDouble);
  for (const std::int64_t column : schema.groups[0].columns) task.samples.baseline[column] = 1.0 / 3;
  const Explanation zero = explainers().make(call("gauss", 30))->attribute(task);
  EXPECT_LT(apart(zero.maps, explainers().make(call("gauss", 30, ",baseline=given"))->attribute(task).maps), 1e-13);
  EXPECT_LT(zero.delta.abs().max().item<double>(), 1e-10);
}

// A blurred constant is the constant, so it is explained by nothing; a blurred image keeps its mean brightness inside.
TEST(IntegratedGradients, BlurredBaselines) {
  const auto model = make_model(testing_support::conv_network(softplus(2), at::kDouble));
  at::Tensor inputs = normal_tensor({2, 2, 5, 4}, 14, at::kDouble);
  inputs[0].fill_(0.7);
  const ExplainTask task = whole_task(*model, inputs);
  const Explanation maps = explainers().make(call("gauss", 40, ",baseline=blurred,blur=1.5"))->attribute(task);
  EXPECT_LT(true_maps(maps)[0].abs().max().item<double>(), 1e-12);
  EXPECT_GT(true_maps(maps)[1].abs().max().item<double>(), 1e-3);
  // Max pooling bends the path: completeness holds up to what 40 points of it leave.
  EXPECT_LT(maps.delta.abs().max().item<double>(), 0.02);
}

TEST(IntegratedGradients, WhatIsMissingIsKnownBeforeAnyWork) {
  const auto model = mlp_model({.features = 6, .type = at::kDouble});
  ExplainTask task = whole_task(*model, normal_tensor({3, 6}, 15, at::kDouble));
  const auto check = [&](const std::string& name) { explainers().make(name)->check_task(task); };
  EXPECT_ERROR(check("integrated_gradients(baseline=mean)"), kUsage, "--background");
  EXPECT_ERROR(check("integrated_gradients(baseline=given)"), kUsage, "--baseline");
  EXPECT_ERROR(check("integrated_gradients(baseline=blurred)"), kUsage, "only images can be blurred");
  EXPECT_ERROR(check("integrated_gradients(project=groups)"), kUsage, "no one-hot groups");
  EXPECT_ERROR(check("gradient_shap"), kUsage, "--background");
  task.samples.background = at::zeros({4, 5}, at::kDouble);
  task.samples.baseline = at::zeros({7}, at::kDouble);
  EXPECT_ERROR(check("integrated_gradients(baseline=mean)"), kInput, "[4, 5]");
  EXPECT_ERROR(check("gradient_shap"), kInput, "[4, 5]");
  EXPECT_ERROR(check("integrated_gradients(baseline=given)"), kInput, "[7]");
  EXPECT_ERROR(explainers().make("integrated_gradients(steps=1,rule=trapezoid)"), kUsage, "steps >= 2");
}

// What a model without layers holds is not known; few large samples are enough for a pass, and many small ones.
TEST(IntegratedGradients, ASampleOfAModelWithoutLayersGoesWithFewOthersWhenItIsLarge) {
  std::vector<std::int64_t> rows;
  const auto model = make_model(
      [&rows](const at::Tensor& x) {
        rows.push_back(x.size(0));
        return x.flatten(1).slice(1, 0, 2).square();
      },
      Capabilities{}, at::kCPU);
  const auto largest_pass = [&](at::IntArrayRef shape) {
    const ExplainTask task = whole_task(*model, normal_tensor(shape, 1).to(at::kFloat));
    rows.clear();
    (void)explained(call("right", 50), task);
    return *std::max_element(rows.begin(), rows.end());
  };
  EXPECT_EQ(largest_pass({32, 64, 64}), 32);
  EXPECT_EQ(largest_pass({10, 1024}), 30);  // 32 fit: three points of all samples, or the like
  EXPECT_EQ(largest_pass({10, 6}), 500);
}

}  // namespace
}  // namespace holdfast::explain
