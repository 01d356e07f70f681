// smooth_grad and gradient_shap.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explain_case.h"
#include "holdfast/core/tensor.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::apart;
using testing_support::explained;
using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::softplus;
using testing_support::whole_task;

TEST(SmoothGrad, WithoutNoiseIsSaliency) {
  const auto model = mlp_model({.features = 6, .classes = 3, .type = at::kDouble});
  const ExplainTask task = whole_task(*model, normal_tensor({4, 6}, 40, at::kDouble));
  EXPECT_LT(apart(explained("smooth_grad(samples=3,sigma=0)", task), explained("saliency", task)), 1e-12);
  const at::Tensor plain = explained("saliency(signed=true)", task);
  EXPECT_LT(apart(explained("smooth_grad(samples=3,sigma=0,signed=true)", task), plain), 1e-12);
  EXPECT_LT(apart(explained("smooth_grad(samples=3,sigma=0,kind=squared)", task), plain.square()), 1e-12);
  EXPECT_EQ(explained("smooth_grad(samples=3,sigma=0,kind=variance)", task).max().item<double>(), 0) << "dust would be ranked";
}

// Moments of the gradients at the noisy copies, one by one. Copy s of a sample comes from the stream of its id.
TEST(SmoothGrad, IsTheMomentsOfGradientsAtNoisyCopies) {
  const auto model = mlp_model({.features = 6, .classes = 3, .type = at::kDouble});
  ExplainTask task = whole_task(*model, normal_tensor({4, 6}, 41, at::kDouble));
  task.samples.ids = at::tensor({7L, 3L, 11L, 5L}, at::kLong);
  task.seed = 9;
  std::vector<at::Tensor> gradients;
  for (int s = 0; s < 5; ++s) {
    ExplainTask copy = task;
    copy.samples.inputs = task.samples.inputs +
                          0.3 * random_normal({6}, task.samples.ids, 9, fmt::format("smooth_grad.noise.{}", s)).to(at::kDouble);
    gradients.push_back(explained("saliency(signed=true)", copy));
  }
  const at::Tensor all = at::stack(gradients);
  const auto of = [&](const std::string& more) { return explained("smooth_grad(samples=5,sigma=0.3" + more + ")", task); };
  EXPECT_LT(apart(of(""), all.mean(0).abs()), 1e-12);
  EXPECT_LT(apart(of(",signed=true"), all.mean(0)), 1e-12);
  EXPECT_LT(apart(of(",kind=squared"), all.square().mean(0)), 1e-12);
  EXPECT_LT(apart(of(",kind=variance"), all.var(0, /*unbiased=*/false)), 1e-10);
}

// E g(x + sigma e) for logits x^2: the gradient 2x has variance 4 sigma^2 wherever x is.
TEST(SmoothGrad, FindsTheVarianceOfAQuadratic) {
  const auto model = make_model(
      [](const at::Tensor& x) {
        const at::Tensor squares = x.square().sum(1, true);
        return at::cat({squares, at::zeros_like(squares)}, 1);
      },
      Capabilities{}, at::kCPU);
  const ExplainTask task = whole_task(*model, normal_tensor({3, 4}, 42, at::kDouble));
  const at::Tensor variance = explained("smooth_grad(samples=4000,sigma=0.5,kind=variance,target=logit)", task);
  EXPECT_LT((variance - 1).abs().max().item<double>(), 0.12);  // five deviations of the estimate
}

// One background row: (x - b) w for a linear logit, whatever the places.
TEST(GradientShap, OfALinearLogitIsTheClosedForm) {
  const at::Tensor weight = normal_tensor({3, 5}, 43, at::kDouble);
  const auto model = linear_model(weight, normal_tensor({3}, 44, at::kDouble));
  ExplainTask task = whole_task(*model, normal_tensor({4, 5}, 45, at::kDouble));
  task.samples.background = normal_tensor({1, 5}, 46, at::kDouble);
  EXPECT_LT(apart(explained("gradient_shap(samples=6,target=logit)", task),
                  weight.index_select(0, task.samples.targets) * (task.samples.inputs - task.samples.background)),
            1e-12);
}

// Its expectation is that of integrated gradients over the background's rows.
TEST(GradientShap, TendsToTheMeanOfIntegratedGradients) {
  const auto model = mlp_model({.features = 5, .activation = softplus(2), .type = at::kDouble});
  ExplainTask task = whole_task(*model, normal_tensor({2, 5}, 47, at::kDouble));
  task.samples.background = normal_tensor({4, 5}, 48, at::kDouble);
  at::Tensor mean = at::zeros_like(task.samples.inputs);
  for (std::int64_t row = 0; row < 4; ++row) {
    ExplainTask from = task;
    from.samples.baseline = task.samples.background[row];
    mean += explained("integrated_gradients(steps=30,rule=gauss,baseline=given)", from) / 4;
  }
  EXPECT_LT(apart(explained("gradient_shap(samples=20000)", task), mean), 0.05);
  EXPECT_GT(apart(explained("gradient_shap(samples=20)", task), mean), 0.05) << "a few samples are not the expectation";
}

}  // namespace
}  // namespace holdfast::explain
