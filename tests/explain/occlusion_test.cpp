#include <gtest/gtest.h>

#include "explain_case.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::apart;
using testing_support::explained;
using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::true_maps;
using testing_support::whole_task;

TEST(Occlusion, OfALinearLogitIsTheClosedForm) {
  const at::Tensor weight = normal_tensor({3, 5}, 50, at::kDouble);
  const auto model = linear_model(weight, normal_tensor({3}, 51, at::kDouble));
  ExplainTask task = whole_task(*model, normal_tensor({4, 5}, 52, at::kDouble));
  task.samples.baseline = normal_tensor({5}, 53, at::kDouble);
  const at::Tensor slopes = weight.index_select(0, task.samples.targets);
  EXPECT_LT(apart(explained("occlusion(target=logit)", task), slopes * task.samples.inputs), 1e-12);
  EXPECT_LT(
      apart(explained("occlusion(target=logit,baseline=given)", task), slopes * (task.samples.inputs - task.samples.baseline)),
      1e-12);
}

// Every window, one at a time, in plain loops; the last ones stop at the border.
TEST(Occlusion, IsTheMeanFallOverTheWindowsOfAPixel) {
  const auto model = make_model(testing_support::conv_network({}, at::kDouble));
  const at::Tensor inputs = normal_tensor({2, 2, 5, 4}, 54, at::kDouble);
  const ExplainTask task = whole_task(*model, inputs);
  const auto probability = [&](const at::Tensor& x) {
    return at::softmax(model->logits(x), 1).gather(1, task.samples.targets.unsqueeze(1)).squeeze(1);
  };
  const at::Tensor clean = probability(inputs);
  at::Tensor sum = at::zeros_like(inputs), count = at::zeros_like(inputs);
  for (const std::int64_t top : {0, 2}) {     // 5 rows, windows of 3 every 2: the second ends at the border
    for (const std::int64_t left : {0, 2}) {  // 4 columns: the second is cut to 2
      const auto window = [&](at::Tensor x) {
        return x.slice(2, top, top + 3).slice(3, left, std::min<std::int64_t>(left + 3, 4));
      };
      at::Tensor replaced = inputs.clone();
      window(replaced).zero_();
      window(sum) += (clean - probability(replaced)).view({2, 1, 1, 1});
      window(count) += 1;
    }
  }
  EXPECT_LT(apart(explained("occlusion(window=3,stride=2)", task), sum / count), 1e-12);
}

TEST(Occlusion, ReplacesWholeGroupsAndPutsTheirEffectWhereTheyAreOn) {
  const auto model = mlp_model({.features = 6, .classes = 3, .type = at::kDouble});
  Schema schema = Schema::of(Layout::vector(6));
  schema.groups = {{.name = "colour", .columns = {1, 2, 4}, .levels = {}}};
  at::Tensor inputs = normal_tensor({2, 6}, 55, at::kDouble);
  for (const std::int64_t column : schema.groups[0].columns) inputs.select(1, column).fill_(column == 4 ? 1 : 0);
  ExplainTask task = whole_task(*model, inputs);
  task.samples.schema = share_schema(schema);
  const auto probability = [&](const at::Tensor& x) {
    return at::softmax(model->logits(x), 1).gather(1, task.samples.targets.unsqueeze(1)).squeeze(1);
  };
  const at::Tensor maps = explained("occlusion", task);
  at::Tensor replaced = inputs.clone(), without_first = inputs.clone();
  for (const std::int64_t column : schema.groups[0].columns) replaced.select(1, column).fill_(1.0 / 3);
  without_first.select(1, 0).zero_();
  EXPECT_LT(apart(maps.select(1, 4), probability(inputs) - probability(replaced)), 1e-12);
  EXPECT_LT(apart(maps.select(1, 0), probability(inputs) - probability(without_first)), 1e-12);
  EXPECT_EQ(maps.select(1, 1).abs().max().item<double>(), 0);
  EXPECT_EQ(maps.select(1, 2).abs().max().item<double>(), 0);
}

// p_c is 1 in float32, and 1 - p_c of the order of e^-200: differences must still be those of exact arithmetic.
TEST(Occlusion, RanksWhereTheSoftmaxSaturates) {
  at::Tensor weight = at::zeros({2, 3});
  weight[0] = at::tensor({100.0, 60.0, 80.0});
  const auto model = linear_model(weight, at::zeros({2}));
  const ExplainTask task = whole_task(*model, at::ones({1, 3}));
  const Explanation explanation = explainers().make("occlusion")->attribute(task);
  // 1 - p = 1 / (1 + e^z): falls of e^-140, e^-180 and e^-160.
  EXPECT_NEAR(explanation.log_scale.item<double>(), -140, 1e-4);
  EXPECT_NEAR(explanation.maps[0][0].item<double>(), 1, 1e-6);
  EXPECT_NEAR(explanation.maps[0][2].item<double>(), std::exp(-20), 1e-13);
  EXPECT_NEAR(explanation.maps[0][1].item<double>(), std::exp(-40), 1e-22);
}

TEST(Occlusion, CountsAPassForEachWindowAndOneForTheWhole) {
  for (const char* call : {"occlusion(window=3,stride=2)", "occlusion(window=5,stride=5)"}) {
    std::int64_t rows = 0;
    const Network network = testing_support::conv_network({}, at::kDouble);
    const auto model = make_model(
        [&](const at::Tensor& x) {
          rows += x.size(0);
          return network.logits(x);
        },
        Capabilities{}, at::kCPU);
    ExplainTask task = whole_task(*model, normal_tensor({1, 2, 5, 4}, 54, at::kDouble));
    const Schema schema = Schema::of(Layout::grid(2, 5, 4));
    task.samples.schema = share_schema(schema);
    rows = 0;
    (void)explained(call, task);
    EXPECT_EQ(explainers().make(call)->evaluations(schema), rows) << call;
  }
  Schema table = Schema::of(Layout::vector(6));
  EXPECT_EQ(explainers().make("occlusion")->evaluations(table), 7);
  table.groups = {{.name = "a", .columns = {0, 1, 2}}};
  EXPECT_EQ(explainers().make("occlusion")->evaluations(table), 5) << "a group is replaced whole";
}

TEST(Occlusion, NeedsNoGradientsAndHasNone) {
  const auto blind = make_model([](const at::Tensor& x) { return x.detach() * 2; },
                                Capabilities{.gradients = false, .double_backward = false}, at::kCPU);
  const ExplainTask task = whole_task(*blind, normal_tensor({2, 3}, 56));
  const auto explainer = explainers().make("occlusion");
  EXPECT_FALSE(explainer->is_differentiable());
  EXPECT_GT(explainer->attribute(task).maps.abs().max().item<double>(), 0);
  EXPECT_ERROR(explainer->differentiable(task), kUsage, "cannot be differentiated");
}

TEST(Occlusion, WindowsThatDoNotFitAreRefused) {
  const auto model = make_model(testing_support::conv_network({}, at::kDouble));
  const ExplainTask task = whole_task(*model, normal_tensor({2, 2, 5, 4}, 57, at::kDouble));
  EXPECT_ERROR(explainers().make("occlusion(window=6)")->check_task(task), kUsage, "window <= 5");
  EXPECT_ERROR(explainers().make("occlusion(window=2,stride=3)"), kUsage, "would never be replaced");
}

}  // namespace
}  // namespace holdfast::explain
