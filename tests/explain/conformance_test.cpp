// Every registered explainer is held to the contract of explainer.h, on a table and on images. Explainers are found through the
// registry.
#include <algorithm>
#include <optional>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "support/errors.h"
#include "support/method_calls.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::method_of;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::softplus;

struct Row {
  std::string call;
  bool magnitudes = false;            // maps are >= 0
  bool gradients = true;              // of the model are needed
  bool tables = true, images = true;  // where it works
};

// Calls that run quickly, and variants that take other code.
const std::vector<Row> kVariants{
    {.call = "saliency", .magnitudes = true},
    {.call = "saliency(signed=true)"},
    {.call = "saliency(target=logit)", .magnitudes = true},
    {.call = "saliency(target=ce,signed=true)"},
    {.call = "input_x_gradient"},
    {.call = "input_x_gradient(target=logit)"},
    {.call = "integrated_gradients(steps=4)"},
    {.call = "integrated_gradients(steps=4,rule=left,target=logit,baseline=given)"},
    {.call = "integrated_gradients(steps=3,rule=trapezoid,target=ce,baseline=mean)"},
    {.call = "integrated_gradients(steps=3,rule=gauss,baseline=blurred)", .tables = false},
    {.call = "integrated_gradients(steps=3,rule=middle)"},
    {.call = "smooth_grad(samples=4)", .magnitudes = true},
    {.call = "smooth_grad(samples=4,signed=true,target=logit)"},
    {.call = "smooth_grad(samples=4,kind=squared)", .magnitudes = true},
    {.call = "smooth_grad(samples=4,sigma=0.5,kind=variance,target=ce)", .magnitudes = true},
    {.call = "gradient_shap(samples=4)"},
    {.call = "gradient_shap(samples=4,sigma=0.1,target=logit)"},
    {.call = "occlusion(window=2,stride=1)", .gradients = false},
    {.call = "occlusion(window=3,stride=2,target=logit,baseline=mean)", .gradients = false},
    {.call = "valid_effect", .magnitudes = true, .gradients = false, .images = false},
    {.call = "valid_effect(target=probability)", .magnitudes = true, .gradients = false, .images = false},
    {.call = "deep_lift"},
    {.call = "deep_lift(target=logit,baseline=given)"},
    {.call = "deep_lift(target=ce,baseline=mean)"},
    {.call = "deep_lift(baseline=blurred)", .tables = false},
    {.call = "lrp"},
    {.call = "lrp(rule=epsilon,epsilon=0.01)"},
    {.call = "lrp(rule=epsilon,epsilon=0.01,target=probability)"},
    {.call = "lrp(rule=gamma,target=ce)"},
    {.call = "lrp(rule=alphabeta,bias=ignore)"},
    {.call = "lrp(convolutions=alphabeta,alpha=1,first=flat)"},
    {.call = "lrp(first=box,low=-4,high=4)"},
    {.call = "smooth_top(k=3,samples=4)", .magnitudes = true},
    {.call = "guided_backprop"},
    {.call = "guided_backprop(target=probability,signed=false)", .magnitudes = true},
    {.call = "grad_cam(relu=false)", .tables = false},
    {.call = "grad_cam(target=probability,layer=act)", .magnitudes = true, .tables = false},
    {.call = "grad_cam(guided=true,interpolation=nearest)", .tables = false},
};

// The variants, and every explainer that has none, with few samples. One that fits tables or images alone is named above.
std::vector<Row> rows() {
  std::vector<Row> all = kVariants;
  std::vector<std::string> calls;
  for (const Row& row : kVariants) calls.push_back(row.call);
  for (const std::string& call : testing_support::calls_beside(calls, explainers(), {{"steps", "4"}, {"samples", "4"}})) {
    all.push_back({.call = call, .gradients = explainers().make(call)->is_differentiable()});
  }
  return all;
}

struct Case {
  Row row;
  bool image = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Row& row : rows()) {
    if (row.tables) all.push_back({row, false});
    if (row.images) all.push_back({row, true});
  }
  return all;
}

class ExplainerConformance : public testing::TestWithParam<Case> {
 protected:
  ExplainerConformance()
      : model_(GetParam().image ? make_model(testing_support::conv_network(softplus(1.5), at::kDouble))
                                : mlp_model({.features = 7, .classes = 3, .activation = softplus(1.5), .type = at::kDouble})) {}

  at::Tensor rows(std::int64_t count, std::uint64_t seed) const {
    return GetParam().image ? normal_tensor({count, 2, 5, 4}, seed, at::kDouble) : normal_tensor({count, 7}, seed, at::kDouble);
  }
  ExplainTask task(const at::Tensor& inputs, const at::Tensor& ids) const {
    const at::NoGradGuard no_graph;
    return {.model = *model_,
            .samples = {.inputs = inputs,
                        .targets = predicted_class(model_->logits(inputs)),
                        .ids = ids,
                        .schema = schema_,
                        .baseline = background_[0],
                        .background = background_},
            .seed = 3};
  }
  // Tables of numbers, images without a schema.
  static std::shared_ptr<const Schema> schema_of(bool image) {
    if (image) return nullptr;
    Schema schema = Schema::of(Layout::vector(7));
    for (int i = 0; i < 7; ++i)
      schema.features.push_back({.name = fmt::format("number {}", i), .low = -9, .high = 9, .deviation = 0.5 + 0.1 * i});
    return share_schema(schema);
  }
  ExplainTask task() const { return task(inputs_, at::arange(6, at::kLong)); }
  const Row& row() const { return GetParam().row; }

  std::unique_ptr<Explainer> explainer_ = explainers().make(GetParam().row.call);
  std::unique_ptr<Model> model_;
  std::shared_ptr<const Schema> schema_ = schema_of(GetParam().image);
  at::Tensor inputs_ = rows(6, 30), background_ = rows(5, 33);
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
  if (row().magnitudes) {
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
  const at::Tensor cotangent = rows(6, 31), direction = rows(6, 32);
  const auto here = explainer_->linearize(task());
  const auto value = [&](double step) {
    ExplainTask moved = task();
    moved.samples.inputs = inputs_ + step * direction;
    const Explanation there = explainer_->attribute(moved);
    return (cotangent * there.maps).flatten(1).sum(1) * (there.log_scale - here->at().log_scale).exp();
  };
  constexpr double kStep = 1e-6;
  const at::Tensor slope = (value(kStep) - value(-kStep)) / (2 * kStep);
  const at::Tensor expected = (here->pullback(cotangent) * direction).flatten(1).sum(1);
  EXPECT_LE((slope - expected).abs().max().item<double>(), 1e-6 * std::max(1.0, expected.abs().max().item<double>()));
}

// Work cut to a memory in which but one row fits, against all of it at once.
TEST_P(ExplainerConformance, IsTheSameInTheSmallestMemory) {
  ExplainTask small = task();
  small.memory = 1;
  const Explanation all = explainer_->attribute(task()), cut = explainer_->attribute(small);
  EXPECT_TRUE(at::allclose(cut.maps, all.maps, 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(cut.log_scale, all.log_scale, 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(cut.logits, all.logits, 1e-10, 1e-12));
  EXPECT_EQ(cut.delta.defined(), all.delta.defined());
  if (all.delta.defined()) {
    EXPECT_TRUE(at::allclose(cut.delta, all.delta, 1e-10, 1e-12));
  }
  if (!explainer_->is_differentiable()) return;
  const at::Tensor cotangent = rows(6, 34);
  const auto held = explainer_->linearize(task()), made_again = explainer_->linearize(small);
  EXPECT_TRUE(at::allclose(made_again->at().maps, all.maps, 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(made_again->pullback(cotangent), held->pullback(cotangent), 1e-9, 1e-12));
  EXPECT_TRUE(at::equal(held->pullback(cotangent), held->pullback(cotangent))) << "a second pullback gives the same";
}

TEST_P(ExplainerConformance, TheAutogradFormIsTheMapWithItsScale) {
  if (!explainer_->is_differentiable()) GTEST_SKIP();
  const Explanation plain = explainer_->attribute(task());
  ExplainTask training = task();
  training.samples.inputs = inputs_.clone().requires_grad_();
  const at::Tensor maps = explainer_->differentiable(training);
  const at::Tensor scale = plain.log_scale.exp().view(GetParam().image ? at::IntArrayRef({6, 1, 1, 1}) : at::IntArrayRef({6, 1}));
  EXPECT_TRUE(at::allclose(maps.detach(), plain.maps * scale, 1e-10, 1e-12));
  const at::Tensor cotangent = rows(6, 35);
  const at::Tensor gradient =
      torch::autograd::grad({maps}, {training.samples.inputs}, {cotangent}, {}, false, /*allow_unused=*/true)[0];
  const at::Tensor pulled = explainer_->linearize(task())->pullback(cotangent * scale);
  EXPECT_TRUE(at::allclose(gradient, pulled, 1e-9, 1e-12));
}

// A surrogate's rule changes the map (and nothing may look at the exact network behind its back).
TEST_P(ExplainerConformance, HonoursTheRule) {
  const auto sharp = GetParam().image ? make_model(testing_support::conv_network({}, at::kDouble))
                                      : mlp_model({.features = 7, .classes = 3, .type = at::kDouble});
  ExplainTask surrogate{.model = *sharp,
                        .samples = {.inputs = inputs_,
                                    .targets = task().samples.targets,
                                    .ids = at::arange(6, at::kLong),
                                    .schema = schema_,
                                    .baseline = background_[0],
                                    .background = background_},
                        .seed = 3,
                        .rule = Rule::softplus(1.5)};
  ExplainTask smooth = task();
  EXPECT_TRUE(at::allclose(explainer_->attribute(surrogate).maps, explainer_->attribute(smooth).maps, 1e-10, 1e-12));
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
  if (row().gradients) {
    EXPECT_ERROR(explainer_->check(*blind), kUsage, "no gradients");
  } else {
    EXPECT_NO_THROW(explainer_->check(*blind));
  }
  EXPECT_NO_THROW(explainer_->check(*model_));
}

TEST_P(ExplainerConformance, NameIsACallThatMakesTheSameExplainer) {
  EXPECT_EQ(explainers().make(explainer_->name())->name(), explainer_->name());
}

INSTANTIATE_TEST_SUITE_P(Explainers, ExplainerConformance, testing::ValuesIn(cases()), [](const auto& test) {
  return method_of(test.param.row.call) + (test.param.image ? "_image_" : "_table_") + std::to_string(test.index);
});

}  // namespace
}  // namespace holdfast::explain
