// The examples of docs/extending.md that no conformance suite covers, each against its definition, and that all are registered.
#include <gtest/gtest.h>

#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/dataset.h"
#include "holdfast/measure/measure.h"
#include "holdfast/train/objective.h"
#include "support/small_models.h"

namespace holdfast::train {
namespace {

TEST(Extending, EveryExampleIsRegistered) {
  EXPECT_TRUE(metrics().contains("same_first"));
  EXPECT_TRUE(attacks().contains("nudge_one"));
  EXPECT_TRUE(explainers().contains("logit_gradient"));
  EXPECT_TRUE(measures().contains("logit_margin"));
  EXPECT_TRUE(objectives().contains("gradient_penalty"));
  EXPECT_TRUE(architectures().contains("bottleneck"));
  EXPECT_TRUE(datasets().contains("rings"));
}

TEST(Extending, SameFirstLooksAtTheFirstFeatureAlone) {
  const Schema schema = Schema::of(Layout::vector(3));
  const std::vector<double> a{1, 3, 2}, b{2, 9, 1}, c{4, 3, 2};
  const auto metric = metrics().make("same_first");
  EXPECT_EQ(metric->compare({a, schema}, {b, schema}), 1);
  EXPECT_EQ(metric->compare({a, schema}, {c, schema}), 0);
  EXPECT_DOUBLE_EQ(*metric->chance({a, schema}), 1.0 / 3);
}

TEST(Extending, LogitGradientOfALinearModelIsItsWeight) {
  const at::Tensor weight = testing_support::normal_tensor({3, 5}, 1), inputs = testing_support::normal_tensor({4, 5}, 2);
  const auto model = testing_support::linear_model(weight, at::zeros({3}));
  const at::Tensor targets = at::arange(4, at::kLong).remainder(3);
  const Explanation explanation =
      explainers()
          .make("logit_gradient")
          ->attribute({.model = *model, .samples = {.inputs = inputs, .targets = targets, .ids = at::arange(4, at::kLong)}});
  EXPECT_TRUE(at::allclose(explanation.maps, weight.index_select(0, targets)));
}

// For logits W x + b the input gradient of a sample's cross-entropy is W^T (p - one hot of the label).
TEST(Extending, GradientPenaltyIsTheMeanSizeOfTheInputGradient) {
  const at::Tensor weight = testing_support::normal_tensor({3, 5}, 1, at::kDouble);
  const at::Tensor inputs = testing_support::normal_tensor({4, 5}, 2, at::kDouble),
                   labels = at::arange(4, at::kLong).remainder(3);
  Network network;
  network.add("input", op::Input{});
  network.add("out", op::Linear{weight.clone(), at::zeros({3}, at::kDouble)});
  const Schema schema = Schema::of(Layout::vector(5));
  const Loss loss = loss_of(*objectives().make("gradient_penalty(weight=0.5)"), network,
                            {.inputs = inputs, .labels = labels, .schema = schema});

  const at::Tensor p = at::softmax(inputs.matmul(weight.t()), 1),
                   hot = at::zeros({4, 3}, at::kDouble).scatter(1, labels.unsqueeze(1), 1);
  const double ce = -(p.log() * hot).sum().item<double>() / 4;
  const double penalty = (p - hot).matmul(weight).norm(2, 1).mean().item<double>();
  EXPECT_NEAR(loss.total.item<double>(), ce + 0.5 * penalty, 1e-9);
  EXPECT_NEAR(loss.parts.at(1).second.item<double>(), penalty, 1e-9);
}

TEST(Extending, BottleneckHasItsNumberOfParameters) {
  const Network network = architectures().make("bottleneck(inputs=7,width=5,neck=2,classes=3)")->build(0);
  EXPECT_EQ(network.parameter_count(), (7 * 5 + 5) + (5 * 2 + 2) + (2 * 3 + 3));
  EXPECT_EQ(network.logits(at::zeros({4, 7})).sizes(), at::IntArrayRef({4, 3}));
}

TEST(Extending, RingsAreApartAndSplit) {
  const Dataset rings = load_dataset("rings(samples=100)", {.folder = "", .seed = 3});
  const at::Tensor radius = (rings.inputs - 0.5).norm(2, 1);
  EXPECT_LT(radius.masked_select(rings.labels == 0).mean().item<double>(), 0.25);
  EXPECT_GT(radius.masked_select(rings.labels == 1).mean().item<double>(), 0.35);
  EXPECT_EQ(rings.train.size() + rings.validation.size() + rings.test.size(), 100U);
}

}  // namespace
}  // namespace holdfast::train
