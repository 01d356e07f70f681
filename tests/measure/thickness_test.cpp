#include <cmath>

#include <gtest/gtest.h>

#include "measure_case.h"
#include "support/errors.h"

namespace holdfast::measure {
namespace {

using testing_support::MeasureCase;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::part;
using testing_support::softplus;

// Logit 0 is x_0^2 / 2 + 0.8 x_1, so its gradient is (x_0, 0.8); logit 1 is 0.5.
std::unique_ptr<Model> parabola() {
  return make_model(
      [](const at::Tensor& x) {
        const at::Tensor first = x.select(1, 0).square() / 2 + 0.8 * x.select(1, 1);
        return at::stack({first, at::full_like(first, 0.5)}, 1);
      },
      Capabilities{}, at::kCPU);
}

at::Tensor matrix(const std::vector<std::vector<double>>& rows) {
  at::Tensor result = at::empty({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j)
      result.index_put_({static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)}, rows[i][j]);
  }
  return result;
}

// On the way from (1, 0.2) to 0 the gradient is (1 - t, 0.8): in order while t <= 0.2.
TEST(Thickness, ClosedFormOfAParabola) {
  MeasureCase test{.model = parabola(), .inputs = matrix({{1, 0.2}}), .explainer = "saliency(target=logit)"};
  test.endpoints = at::zeros({1, 2});
  EXPECT_DOUBLE_EQ(test.run("thickness(k=1,from=given,points=10)").values[0], 0.2);
  EXPECT_NEAR(test.run("thickness(k=1,from=given,points=10,form=relaxed)").values[0], 0.5 - 0.8, 1e-6);
  EXPECT_DOUBLE_EQ(test.run("thickness(i=1,j=2,from=given,points=10)").values[0], 0.2);
  // Logit 0 is above 0.5 at t = 0.05 alone of the ten points.
  EXPECT_EQ(part(test.run("thickness(k=1,from=given,points=10)"), "label_flips")[0], 9);
  EXPECT_TRUE(std::isnan(part(test.run("thickness(k=1,from=given,points=10)"), "error")[0])) << "nothing was sampled";
}

TEST(Thickness, IsOneWhereTheRankingCannotChange) {
  const at::Tensor weight = normal_tensor({2, 9}, 3);
  MeasureCase test{.model = testing_support::linear_model(weight, at::zeros({2})), .inputs = normal_tensor({5, 9}, 4)};
  // Also where neither the endpoints nor the points are a power of two: then a sum of rounded shares would not be 1.
  for (const char* call : {"thickness(k=4,epsilon=2)", "thickness(k=4,epsilon=2,endpoints=49,points=7)"}) {
    const Measurement measured = test.run(call);
    for (std::size_t b = 0; b < 5; ++b) {
      EXPECT_EQ(measured.values[b], 1);
      EXPECT_EQ(part(measured, "error")[b], 0);
    }
  }
}

// Every point and every pair by itself, from the definition.
TEST(Thickness, EqualsAPlainLoopOverPointsAndPairs) {
  constexpr std::int64_t kSamples = 4, kFeatures = 9, kEndpoints = 5, kPoints = 6, kTop = 3;
  MeasureCase test{.model = mlp_model({.features = kFeatures, .activation = softplus(3), .gain = 2, .type = at::kDouble}),
                   .inputs = normal_tensor({kSamples, kFeatures}, 5, at::kDouble)};
  test.endpoints = test.inputs.unsqueeze(1) + normal_tensor({kSamples, kEndpoints, kFeatures}, 6, at::kDouble);
  const MeasureTask task = test.task();
  const auto map_at = [&](const at::Tensor& x, std::int64_t b) {
    const at::Tensor point = x.detach().requires_grad_();
    const at::Tensor p = at::softmax(test.model->logits(point.unsqueeze(0)), 1)[0][task.samples.targets[b].item<std::int64_t>()];
    return torch::autograd::grad({p}, {point})[0].abs();
  };
  const Measurement indicator = test.run("thickness(k=3,from=given,points=6)");
  const Measurement relaxed = test.run("thickness(k=3,from=given,points=6,form=relaxed)");
  double below_one = 0;
  for (std::int64_t b = 0; b < kSamples; ++b) {
    const at::Tensor order = map_at(test.inputs[b], b).argsort(0, /*descending=*/true);
    double in_order = 0, gap = 0;
    for (std::int64_t e = 0; e < kEndpoints; ++e) {
      for (std::int64_t m = 0; m < kPoints; ++m) {
        const double t = (static_cast<double>(m) + 0.5) / kPoints;
        const at::Tensor map = map_at((1 - t) * test.inputs[b] + t * test.endpoints[b][e], b).index_select(0, order);
        for (std::int64_t i = 0; i < kTop; ++i) {
          for (std::int64_t j = kTop; j < kFeatures; ++j) {
            const double h = (map[i] - map[j]).item<double>();
            in_order += h >= 0;
            gap += h;
          }
        }
      }
    }
    const double count = kEndpoints * kPoints * kTop * (kFeatures - kTop);
    EXPECT_NEAR(indicator.values[static_cast<std::size_t>(b)], in_order / count, 1e-12);
    EXPECT_NEAR(relaxed.values[static_cast<std::size_t>(b)], gap / count, 1e-12);
    below_one += in_order < count;
  }
  EXPECT_GT(below_one, 0) << "a case in which nothing swaps shows nothing";
}

// The points that reach the model, seen from inside it.
TEST(Thickness, EndpointsAreUniformInTheBall) {
  constexpr std::int64_t kFeatures = 4;
  std::vector<at::Tensor> seen;
  const auto spy = [&](const at::Tensor& x) {
    if (x.size(0) > 1) seen.push_back(x.detach().clone());
    return at::stack({x.square().sum(1), x.sum(1)}, 1);
  };
  MeasureCase test{.model = make_model(spy, Capabilities{}, at::kCPU), .inputs = at::ones({1, kFeatures})};
  (void)test.run("thickness(k=1,epsilon=0.7,endpoints=4000,points=1)");
  const at::Tensor moved = 2 * (at::cat(seen) - test.inputs);  // the middle of the way
  EXPECT_EQ(moved.size(0), 4000);
  const at::Tensor volume = (moved.norm(2, 1) / 0.7).pow(kFeatures);
  EXPECT_LE(volume.max().item<double>(), 1 + 1e-4);
  EXPECT_NEAR(volume.mean().item<double>(), 0.5, 0.02);
  EXPECT_NEAR(volume.var().item<double>(), 1.0 / 12, 0.01);
  EXPECT_LE(moved.mean(0).abs().max().item<double>(), 0.03);

  seen.clear();
  (void)test.run("thickness(k=1,from=gaussian,sigma=0.2,endpoints=4000,points=1)");
  const at::Tensor gaussian = 2 * (at::cat(seen) - test.inputs);
  EXPECT_NEAR(gaussian.std().item<double>(), 0.2, 0.006);
}

// Over many seeds the values scatter as the standard error says.
TEST(Thickness, StandardErrorIsTheScatterBetweenSeeds) {
  MeasureCase test{
      .model = mlp_model({.activation = softplus(4), .gain = 2}), .inputs = normal_tensor({1, 12}, 8), .epsilon = 1.5};
  double sum = 0, squares = 0, errors = 0;
  constexpr int kSeeds = 200;
  for (int seed = 0; seed < kSeeds; ++seed) {
    test.seed = static_cast<std::uint64_t>(seed);
    const Measurement measured = test.run("thickness(k=4,endpoints=12,points=4)");
    sum += measured.values[0], squares += measured.values[0] * measured.values[0], errors += part(measured, "error")[0];
  }
  const double mean = sum / kSeeds, scatter = std::sqrt(squares / kSeeds - mean * mean);
  EXPECT_GT(scatter, 0.001);
  EXPECT_NEAR(errors / kSeeds / scatter, 1, 0.15);
}

TEST(Thickness, WorksWithAnyExplainerAndWithPictures) {
  MeasureCase test{.model = make_model(
                       [](const at::Tensor& x) {
                         return at::stack({x.pow(3).flatten(1).sum(1), x.flatten(1).sum(1)}, 1);
                       },
                       Capabilities{}, at::kCPU),
                   .inputs = normal_tensor({2, 3, 4, 4}, 9)};
  const Measurement measured = test.run("thickness(k=5,endpoints=8,points=4)");
  for (const double value : measured.values) EXPECT_TRUE(value > 0.5 && value <= 1);
}

TEST(Thickness, AMapThatRanksNothingIsUndefined) {
  MeasureCase test{.model = testing_support::linear_model(at::zeros({2, 5}), at::zeros({2})),
                   .inputs = normal_tensor({2, 5}, 10)};
  for (const double value : test.run("thickness(k=2,endpoints=3,points=2)").values) EXPECT_TRUE(std::isnan(value));
}

TEST(Thickness, RefusesWhatDoesNotFit) {
  MeasureCase test{.model = mlp_model({}), .inputs = normal_tensor({2, 12}, 11)};
  EXPECT_ERROR(test.check("thickness(k=12)"), kUsage, "thickness(k=12): the map has 12 features; choose k < 12");
  EXPECT_ERROR(test.check("thickness(i=1,j=13)"), kUsage, "choose j <= 12");
  EXPECT_ERROR(measures().make("thickness(i=3,j=2)"), kUsage, "1 <= i < j");
  EXPECT_ERROR(test.check("thickness(from=given)"), kUsage, "--endpoints");
  test.endpoints = at::zeros({2, 11});
  EXPECT_ERROR(test.check("thickness(from=given)"), kInput, "[2, 11]");
  test.epsilon = 0;
  EXPECT_ERROR(test.check("thickness"), kUsage, "epsilon");
}

}  // namespace
}  // namespace holdfast::measure
