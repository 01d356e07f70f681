// Every registered explainer is held to the contract of explainer.h; a name without a row here fails.
#include <algorithm>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast {
namespace {

using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::softplus;

struct Row {
  std::string call;
  bool magnitudes = false;  // maps are >= 0
};

const std::vector<Row> kRows{
    {.call = "saliency", .magnitudes = true},
    {.call = "saliency(signed=true)"},
    {.call = "saliency(target=logit)", .magnitudes = true},
    {.call = "saliency(target=ce,signed=true)"},
};

std::string method_of(const std::string& call) {
  return call.substr(0, call.find('('));
}

TEST(ExplainerTable, EveryExplainerHasARow) {
  for (const MethodInfo* info : explainers().infos()) {
    EXPECT_TRUE(std::any_of(kRows.begin(), kRows.end(), [&](const Row& row) { return method_of(row.call) == info->name; }))
        << info->name << " has no row in kRows";
  }
}

class ExplainerConformance : public testing::TestWithParam<Row> {
 protected:
  ExplainTask task(const at::Tensor& inputs, const at::Tensor& ids) const {
    const at::NoGradGuard no_graph;
    return {.model = *model_, .inputs = inputs, .targets = predicted_class(model_->logits(inputs)), .sample_ids = ids, .seed = 3};
  }
  ExplainTask task() const { return task(inputs_, at::arange(6, at::kLong)); }

  std::unique_ptr<Explainer> explainer_ = explainers().make(GetParam().call);
  std::unique_ptr<Model> model_ = mlp_model({.features = 7, .classes = 3, .activation = softplus(1.5), .type = at::kDouble});
  at::Tensor inputs_ = normal_tensor({6, 7}, 30, at::kDouble);
};

TEST_P(ExplainerConformance, MapsHaveTheInputsShapeAndAreFinite) {
  const Explanation explanation = explainer_->attribute(task());
  EXPECT_EQ(explanation.maps.sizes(), inputs_.sizes());
  EXPECT_EQ(explanation.log_scale.sizes(), at::IntArrayRef({6}));
  EXPECT_TRUE(at::isfinite(explanation.maps).all().item<bool>());
  EXPECT_TRUE(at::isfinite(explanation.log_scale).all().item<bool>());
  EXPECT_FALSE(explanation.maps.requires_grad());
  EXPECT_FALSE(explanation.logits.requires_grad());
  EXPECT_TRUE(at::allclose(explanation.logits, model_->logits(inputs_)));
  EXPECT_GT(explanation.maps.abs().max().item<double>(), 0);
  if (GetParam().magnitudes) {
    EXPECT_GE(explanation.maps.min().item<double>(), 0);
  }
}

TEST_P(ExplainerConformance, IsDeterministicAndWorksWhereGradientsAreOff) {
  const at::Tensor maps = explainer_->attribute(task()).maps;
  const at::NoGradGuard no_graph;
  EXPECT_TRUE(at::equal(explainer_->attribute(task()).maps, maps));
}

TEST_P(ExplainerConformance, ABatchIsItsSamplesOneByOne) {
  const Explanation all = explainer_->attribute(task());
  for (std::int64_t b = 0; b < 6; ++b) {
    const Explanation one = explainer_->attribute(task(inputs_.slice(0, b, b + 1), torch::tensor({b}, at::kLong)));
    EXPECT_LE((one.maps[0] - all.maps[b]).abs().max().item<double>(), 1e-12);
    EXPECT_LE((one.log_scale[0] - all.log_scale[b]).abs().item<double>(), 1e-12);
  }
}

TEST_P(ExplainerConformance, LinearizationHasTheSameMaps) {
  if (!explainer_->is_differentiable()) GTEST_SKIP();
  const auto here = explainer_->linearize(task());
  const Explanation plain = explainer_->attribute(task());
  EXPECT_TRUE(at::allclose(here->at().maps, plain.maps, 1e-12, 1e-14));
  EXPECT_TRUE(at::allclose(here->at().log_scale, plain.log_scale, 1e-12, 1e-14));
  EXPECT_FALSE(here->at().maps.requires_grad());
}

TEST_P(ExplainerConformance, PullbackIsTheDerivativeAtAFixedScale) {
  if (!explainer_->is_differentiable()) GTEST_SKIP();
  const at::Tensor cotangent = normal_tensor({6, 7}, 31, at::kDouble), direction = normal_tensor({6, 7}, 32, at::kDouble);
  const auto here = explainer_->linearize(task());
  const auto value = [&](double step) {
    ExplainTask moved = task();
    moved.inputs = inputs_ + step * direction;
    const Explanation there = explainer_->attribute(moved);
    return (cotangent * there.maps).sum(1) * (there.log_scale - here->at().log_scale).exp();
  };
  constexpr double kStep = 1e-6;
  const at::Tensor slope = (value(kStep) - value(-kStep)) / (2 * kStep);
  const at::Tensor expected = (here->pullback(cotangent) * direction).sum(1);
  EXPECT_LE((slope - expected).abs().max().item<double>(), 1e-6 * std::max(1.0, expected.abs().max().item<double>()));
}

TEST_P(ExplainerConformance, LeavesTheModelAndTheInputsAsTheyWere) {
  const at::Tensor before = inputs_.clone();
  (void)explainer_->attribute(task());
  EXPECT_TRUE(at::equal(inputs_, before));
  EXPECT_FALSE(inputs_.requires_grad());
  for (const Parameter& parameter : model_->network()->parameters())
    EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
}

TEST_P(ExplainerConformance, RefusesAModelWithoutGradientsBeforeAnyWork) {
  const auto blind =
      make_model([](const at::Tensor& x) { return x; }, Capabilities{.gradients = false, .double_backward = false}, at::kCPU);
  EXPECT_ERROR(explainer_->check(*blind), kUsage, "no gradients");
  EXPECT_NO_THROW(explainer_->check(*model_));
}

TEST_P(ExplainerConformance, NameIsACallThatMakesTheSameExplainer) {
  EXPECT_EQ(explainers().make(explainer_->name())->name(), explainer_->name());
}

INSTANTIATE_TEST_SUITE_P(Explainers, ExplainerConformance, testing::ValuesIn(kRows),
                         [](const auto& row) { return method_of(row.param.call) + "_" + std::to_string(row.index); });

}  // namespace
}  // namespace holdfast
