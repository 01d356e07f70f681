#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/explain/logit_cotangent.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::linear_model;
using testing_support::mlp_model;
using testing_support::MlpShape;
using testing_support::normal_tensor;
using testing_support::softplus;

ExplainTask task_for(const Model& model, const at::Tensor& inputs, const at::Tensor& targets = {}) {
  const at::NoGradGuard no_graph;
  return {.model = model,
          .samples = {.inputs = inputs,
                      .targets = targets.defined() ? targets : predicted_class(model.logits(inputs)),
                      .ids = at::arange(inputs.size(0), at::kLong)}};
}

at::Tensor multiplied_out(const Explanation& explanation) {
  return explanation.maps * explanation.log_scale.exp().unsqueeze(1);
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const double scale = expected.abs().max().item<double>();
  EXPECT_LE((actual.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>(), tolerance * scale);
}

// d p_c / dx = p_c (w_c - sum_j p_j w_j) for logits W x + b.
TEST(Saliency, OfALinearModelIsTheClosedForm) {
  const at::Tensor weight = normal_tensor({3, 5}, 1, at::kDouble), bias = normal_tensor({3}, 2, at::kDouble);
  const auto model = linear_model(weight, bias);
  const at::Tensor inputs = normal_tensor({7, 5}, 3, at::kDouble);
  const ExplainTask task = task_for(*model, inputs);
  const at::Tensor p = at::softmax(inputs.matmul(weight.t()) + bias, 1);
  const at::Tensor p_c = p.gather(1, task.samples.targets.unsqueeze(1));
  const at::Tensor from_c = weight.index_select(0, task.samples.targets) - p.matmul(weight);
  expect_close(multiplied_out(explainers().make("saliency(signed=true)")->attribute(task)), p_c * from_c, 1e-12);
  expect_close(multiplied_out(explainers().make("saliency")->attribute(task)), (p_c * from_c).abs(), 1e-12);
  expect_close(multiplied_out(explainers().make("saliency(target=ce,signed=true)")->attribute(task)), -from_c, 1e-12);
  expect_close(multiplied_out(explainers().make("saliency(target=logit,signed=true)")->attribute(task)),
               weight.index_select(0, task.samples.targets), 1e-12);
}

// Logits V relu(W x + b): inside a linear region they are linear with weight V diag(active) W.
TEST(Saliency, OfAReluNetIsThatOfItsLinearRegion) {
  const auto model = mlp_model({.features = 6, .hidden = 9, .classes = 3, .type = at::kDouble});
  const auto& nodes = model->network()->nodes();
  const auto& first = std::get<op::Linear>(nodes[1].operation);
  const auto& last = std::get<op::Linear>(nodes[3].operation);
  const at::Tensor inputs = normal_tensor({5, 6}, 4, at::kDouble);
  const ExplainTask task = task_for(*model, inputs);
  const at::Tensor maps = multiplied_out(explainers().make("saliency(signed=true)")->attribute(task));
  for (std::int64_t b = 0; b < 5; ++b) {
    const at::Tensor before = first.weight.mv(inputs[b]) + first.bias;
    const at::Tensor slope = (last.weight * (before > 0)).matmul(first.weight);
    const at::Tensor p = at::softmax(last.weight.mv(before.relu()) + last.bias, 0);
    const std::int64_t c = task.samples.targets[b].item<std::int64_t>();
    expect_close(maps[b], p[c] * (slope[c] - p.matmul(slope)), 1e-12);
  }
}

// The loops against the tensor operations: value, scale, first derivative, and the second, which training with a Hessian takes.
TEST(LogitCotangent, FusedAndComposedAreTheSameFunction) {
  for (const ExplainedQuantity quantity : {ExplainedQuantity::kProbability, ExplainedQuantity::kCrossEntropy}) {
    for (const double gain : {1.0, 200.0}) {
      const at::Tensor logits = normal_tensor({9, 4}, 70, at::kDouble).mul_(gain).requires_grad_();
      const at::Tensor targets = torch::tensor({0L, 1L, 2L, 3L, 0L, 1L, 2L, 3L, 0L}, at::kLong);
      const at::Tensor weights = normal_tensor({9, 4}, 71, at::kDouble).requires_grad_(),
                       again = normal_tensor({9, 4}, 72, at::kDouble);
      const auto derivatives = [&](const LogitCotangent& cotangent) {
        const at::Tensor plain = torch::autograd::grad({cotangent.value}, {logits}, {weights}, true)[0];
        const at::Tensor first = torch::autograd::grad({cotangent.value}, {logits}, {weights}, true, true)[0];
        const auto second = torch::autograd::grad({first}, {logits, weights}, {again});
        return std::vector<at::Tensor>{cotangent.value.detach(), cotangent.log_scale, plain,
                                       first.detach(),           second[0],           second[1]};
      };
      const auto fused = derivatives(logit_cotangent(logits, targets, quantity));
      const auto composed = derivatives(composed_logit_cotangent(logits, targets, quantity));
      for (std::size_t i = 0; i < fused.size(); ++i)
        EXPECT_TRUE(at::allclose(fused[i], composed[i], 1e-10, 1e-12)) << i << " at gain " << gain;
    }
  }
}

TEST(Saliency, AgreesWithFiniteDifferencesOfTheProbability) {
  const auto model = mlp_model({.features = 5, .classes = 3, .activation = softplus(2), .type = at::kDouble});
  const at::Tensor inputs = normal_tensor({4, 5}, 5, at::kDouble);
  const ExplainTask task = task_for(*model, inputs);
  const at::Tensor maps = multiplied_out(explainers().make("saliency(signed=true)")->attribute(task));
  const auto probability = [&](const at::Tensor& x) {
    return at::softmax(model->logits(x), 1).gather(1, task.samples.targets.unsqueeze(1)).squeeze(1);
  };
  constexpr double kStep = 1e-6;
  for (std::int64_t i = 0; i < 5; ++i) {
    const at::Tensor step = at::zeros({5}, at::kDouble).index_put_({i}, kStep);
    const at::Tensor slope = (probability(inputs + step) - probability(inputs - step)) / (2 * kStep);
    EXPECT_LE((slope - maps.select(1, i)).abs().max().item<double>(), 1e-8);
  }
}

// The pullback against finite differences of <cotangent, maps> at a fixed scale: maps * exp(log_scale - log_scale here).
TEST(Saliency, PullbackAgreesWithFiniteDifferences) {
  const auto model = mlp_model({.features = 5, .classes = 3, .activation = softplus(2), .type = at::kDouble});
  const at::Tensor inputs = normal_tensor({4, 5}, 6, at::kDouble), cotangent = normal_tensor({4, 5}, 7, at::kDouble);
  for (const char* call : {"saliency", "saliency(signed=true)", "saliency(target=ce)", "saliency(target=logit,signed=true)"}) {
    const auto explainer = explainers().make(call);
    const ExplainTask task = task_for(*model, inputs);
    const auto here = explainer->linearize(task);
    const at::Tensor gradient = here->pullback(cotangent);
    EXPECT_TRUE(at::equal(gradient, here->pullback(cotangent))) << "a second pullback gives the same";
    const auto value = [&](const at::Tensor& x) {
      const Explanation there = explainer->attribute(task_for(*model, x, task.samples.targets));
      return (cotangent * there.maps * (there.log_scale - here->at().log_scale).exp().unsqueeze(1)).sum(1);
    };
    constexpr double kStep = 1e-6;
    for (std::int64_t i = 0; i < 5; ++i) {
      const at::Tensor step = at::zeros({5}, at::kDouble).index_put_({i}, kStep);
      const at::Tensor slope = (value(inputs + step) - value(inputs - step)) / (2 * kStep);
      EXPECT_LE((slope - gradient.select(1, i)).abs().max().item<double>(), 1e-7) << call;
    }
  }
}

// The same weights with the last layer a hundredfold: p_c is 1 in float32 and its gradient 0, but the map's direction and the
// attack's direction must still be those of exact arithmetic.
TEST(Saliency, KeepsRankingAndDirectionWhenTheSoftmaxSaturates) {
  const at::Tensor weight = normal_tensor({3, 8}, 8, at::kDouble);
  const at::Tensor inputs = normal_tensor({6, 8}, 9, at::kDouble);
  at::Tensor clean_logits = inputs.matmul(weight.t());
  const at::Tensor two_largest = std::get<0>(clean_logits.topk(2, 1));
  const double gain = 200 / (two_largest.select(1, 0) - two_largest.select(1, 1)).min().item<double>();
  const auto model = linear_model((weight * gain).to(at::kFloat), at::zeros({3}, at::kFloat));
  const auto exact = linear_model(weight * gain, at::zeros({3}, at::kDouble));
  const at::Tensor plain = inputs.to(at::kFloat).requires_grad_();
  const ExplainTask task = task_for(*model, plain.detach());
  const at::Tensor p_c = at::softmax(model->logits(plain), 1).gather(1, task.samples.targets.unsqueeze(1)).sum();
  ASSERT_EQ(torch::autograd::grad({p_c}, {plain})[0].abs().max().item<float>(), 0) << "the plain gradient should have underflown";

  const auto explainer = explainers().make("saliency(signed=true)");
  const auto here = explainer->linearize(task);
  const auto there = explainer->linearize(task_for(*exact, inputs, task.samples.targets));
  const auto direction = [](const at::Tensor& rows) {
    const at::Tensor doubles = rows.to(at::kDouble);
    return doubles / doubles.norm(2, 1, true);
  };
  const at::Tensor maps = here->at().maps;
  EXPECT_LT((direction(maps) - direction(there->at().maps)).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(at::equal(maps.abs().argsort(-1, true), there->at().maps.abs().argsort(-1, true)));
  EXPECT_LT((here->at().log_scale - there->at().log_scale).abs().max().item<double>(), 1e-3);
  const at::Tensor cotangent = normal_tensor({6, 8}, 10, at::kDouble);
  const at::Tensor gradient = here->pullback(cotangent.to(at::kFloat));
  EXPECT_GT(gradient.norm(2, 1).min().item<double>(), 0);
  EXPECT_LT((direction(gradient) - direction(there->pullback(cotangent))).abs().max().item<double>(), 1e-4);
}

// The class that is explained may itself be the improbable one.
TEST(Saliency, KeepsTheDirectionOfAnImprobableClass) {
  const at::Tensor weight = normal_tensor({2, 4}, 11).mul_(300);
  const auto model = linear_model(weight, at::zeros({2}));
  const at::Tensor inputs = normal_tensor({3, 4}, 12);
  const at::Tensor other = 1 - task_for(*model, inputs).samples.targets;
  const Explanation explanation = explainers().make("saliency(signed=true)")->attribute(task_for(*model, inputs, other));
  const at::Tensor expected = weight.index_select(0, other) - weight.index_select(0, 1 - other);
  expect_close(explanation.maps / explanation.maps.norm(2, 1, true), expected / expected.norm(2, 1, true), 1e-5);
}

TEST(Saliency, MagnitudesKeepTheirSignsWhenAsked) {
  const auto model = mlp_model();
  ExplainTask task = task_for(*model, normal_tensor({4, 12}, 13));
  const at::Tensor magnitudes = explainers().make("saliency")->attribute(task).maps;
  task.keep_signs = true;
  const at::Tensor maps = explainers().make("saliency")->attribute(task).maps;
  EXPECT_TRUE(at::equal(maps.abs(), magnitudes));
  EXPECT_LT(maps.min().item<float>(), 0);
}

TEST(Saliency, TrainsThroughTheMultipliedOutMap) {
  const auto model = mlp_model({.activation = softplus(1), .type = at::kDouble});
  ExplainTask task = task_for(*model, normal_tensor({4, 12}, 14, at::kDouble));
  const auto explainer = explainers().make("saliency");
  const at::Tensor expected = multiplied_out(explainer->attribute(task));
  task.samples.inputs = task.samples.inputs.clone().requires_grad_();
  const at::Tensor maps = explainer->differentiable(task);
  expect_close(maps.detach(), expected, 1e-12);
  EXPECT_GT(torch::autograd::grad({maps.sum()}, {task.samples.inputs})[0].abs().max().item<double>(), 0);
}

TEST(Saliency, OfALinearLogitCannotBeAttacked) {
  const auto model = linear_model(normal_tensor({2, 4}, 15), at::zeros({2}));
  const auto here = explainers().make("saliency(target=logit)")->linearize(task_for(*model, normal_tensor({3, 4}, 16)));
  EXPECT_EQ(here->pullback(at::ones({3, 4})).abs().max().item<float>(), 0);
}

TEST(Saliency, OfAModelWithOneOutputExplainsItsValue) {
  const at::Tensor weight = normal_tensor({1, 4}, 17);
  const auto model = linear_model(weight, at::zeros({1}));
  const ExplainTask task = task_for(*model, normal_tensor({3, 4}, 18));
  for (const char* call : {"saliency", "saliency(target=logit)"})
    expect_close(multiplied_out(explainers().make(call)->attribute(task)), weight.abs().expand({3, 4}), 1e-6);
}

class OneHotTest : public testing::Test {
 protected:
  OneHotTest() {
    schema_.groups = {{.name = "sex", .columns = {2, 3}}, {.name = "race", .columns = {4, 5, 6}}};
    inputs_ = normal_tensor({5, 8}, 20, at::kDouble);
    inputs_.slice(1, 2, 7).zero_();
    for (std::int64_t b = 0; b < 5; ++b) {
      inputs_[b][2 + b % 2] = 1;
      inputs_[b][4 + b % 3] = 1;
    }
  }
  ExplainTask task(const Model& model) const {
    ExplainTask task = task_for(model, inputs_);
    task.samples.schema = share_schema(schema_);
    return task;
  }

  Schema schema_ = Schema::of(Layout::vector(8));
  at::Tensor inputs_;
};

TEST_F(OneHotTest, ProjectionSubtractsEachGroupsMean) {
  const at::Tensor maps = normal_tensor({3, 8}, 21, at::kDouble);
  at::Tensor expected = maps.clone();
  for (const Group& group : schema_.groups) {
    for (const std::int64_t column : group.columns) {
      at::Tensor mean = at::zeros({3}, at::kDouble);
      for (const std::int64_t other : group.columns) mean += maps.select(1, other) / static_cast<double>(group.columns.size());
      expected.select(1, column) -= mean;
    }
  }
  expect_close(project_groups(maps, schema_), expected, 1e-14);
}

// Moving a constant between a group's columns and the bias changes no valid prediction: the map must not see it.
TEST_F(OneHotTest, MapsDoNotFeelTheGauge) {
  Network network = testing_support::mlp_network({.features = 8, .type = at::kDouble});
  const auto model = make_model(network.clone());
  auto linear = std::get<op::Linear>(network.nodes()[1].operation);  // shares storage with the network
  const at::Tensor constant = normal_tensor({16}, 22, at::kDouble).mul_(5);
  for (const std::int64_t column : schema_.groups[1].columns) linear.weight.select(1, column) += constant;
  linear.bias -= constant;
  const auto gauged = make_model(network);
  ASSERT_LT((model->logits(inputs_) - gauged->logits(inputs_)).abs().max().item<double>(), 1e-12) << "no prediction may change";

  const auto projected = explainers().make("saliency"), plain = explainers().make("saliency(project=none)");
  expect_close(projected->attribute(task(*gauged)).maps, projected->attribute(task(*model)).maps, 1e-10);
  const at::Tensor before = plain->attribute(task(*model)).maps, after = plain->attribute(task(*gauged)).maps;
  EXPECT_GT((before - after).abs().max().item<double>(), 0.1) << "the plain gradient does feel it";
}

TEST_F(OneHotTest, GroupsAskedForMustExist) {
  const auto model = mlp_model({.features = 8, .type = at::kDouble});
  EXPECT_ERROR(explainers().make("saliency(project=groups)")->attribute(task_for(*model, inputs_)), kUsage, "no one-hot groups");
  EXPECT_NO_THROW(explainers().make("saliency(project=groups)")->attribute(task(*model)));
}

TEST(PredictedClass, IsTheLowerOneOnTies) {
  EXPECT_TRUE(at::equal(predicted_class(torch::tensor({{1.0, 3.0, 3.0}, {2.0, 2.0, 1.0}})), torch::tensor({1L, 0L}, at::kLong)));
}

// An explainer with nothing but the autograd form gets linearize() from the base.
class Squares final : public Explainer {
 public:
  Squares() : Explainer("squares") {}
  void check(const Model&) const override {}
  Explanation attribute(const ExplainTask& task) const override {
    return {task.samples.inputs.square(), at::zeros({task.samples.inputs.size(0)}), task.model.logits(task.samples.inputs)};
  }
  at::Tensor differentiable(const ExplainTask& task) const override { return task.samples.inputs.square(); }
};

TEST(Explainer, LinearizesByItsAutogradForm) {
  const auto model = linear_model(normal_tensor({2, 4}, 23), at::zeros({2}));
  const at::Tensor inputs = normal_tensor({3, 4}, 24), cotangent = normal_tensor({3, 4}, 25);
  const auto here = Squares().linearize(task_for(*model, inputs));
  EXPECT_TRUE(at::equal(here->at().maps, inputs.square()));
  EXPECT_TRUE(at::allclose(here->at().logits, model->logits(inputs)));
  EXPECT_TRUE(at::allclose(here->pullback(cotangent), 2 * inputs * cotangent));
}

}  // namespace
}  // namespace holdfast::explain
