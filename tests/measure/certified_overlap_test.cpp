// Certified P@k: below what the exact search, attacks and random points find, and what it is in cases with closed forms.
#include <cmath>

#include <gtest/gtest.h>

#include "../attack/pattern_search.h"
#include "ball_case.h"
#include "holdfast/attack/attack.h"
#include "holdfast/measure/margin_bounds.h"
#include "measure_case.h"
#include "support/errors.h"

namespace holdfast::measure {
namespace {

using testing_support::chain_network;
using testing_support::linear_model;
using testing_support::MeasureCase;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::OneHiddenLayer;
using testing_support::PatternSearch;
using testing_support::points_in_ball;
using testing_support::softplus;

std::string certificate(int k, double radius, const std::string& more = "") {
  return fmt::format("certified_overlap(k={},radius={}{})", k, radius, more);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::vector<double> doubles_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

OneHiddenLayer one_hidden_layer(const Network& network) {
  const auto& hidden = std::get<op::Linear>(network.nodes()[1].operation);
  const auto& out = std::get<op::Linear>(network.nodes()[3].operation);
  OneHiddenLayer layer{.bias = doubles_of(hidden.bias), .out = doubles_of(out.weight[1] - out.weight[0])};
  for (std::int64_t h = 0; h < hidden.weight.size(0); ++h) layer.weight.push_back(doubles_of(hidden.weight[h]));
  return layer;
}

TEST(CertifiedOverlap, IsNeverAboveTheExactLeastValueAndOftenIsIt) {
  constexpr double kAnyClass = -1e6;
  for (const double radius : {0.03, 0.1, 0.3}) {
    std::int64_t same = 0, moved = 0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      MeasureCase test{.model = mlp_model({.features = 9, .hidden = 10, .seed = seed, .type = at::kDouble}),
                       .inputs = normal_tensor({20, 9}, 90 + seed, at::kDouble).mul_(0.5)};
      const std::vector<double> certified = test.run(certificate(4, radius)).values;
      const OneHiddenLayer layer = one_hidden_layer(*test.model->network());
      for (std::int64_t b = 0; b < 20; ++b) {
        const double exact = PatternSearch(layer, doubles_of(test.inputs[b]), radius, 4, kAnyClass).least();
        EXPECT_LE(certified[static_cast<std::size_t>(b)], exact + 1e-12) << "seed " << seed << ", sample " << b;
        same += certified[static_cast<std::size_t>(b)] == exact;
        moved += exact < 1;
      }
    }
    EXPECT_GE(same, radius < 0.2 ? 45 : 20) << "of 60 at radius " << radius;
    EXPECT_GT(moved, 5) << "the case should be worth certifying";
  }
}

// Chains with all activations, depths and groups, under an attack and many random points; the explained class may change at
// these.
TEST(CertifiedOverlap, IsNeverAboveWhatIsFound) {
  constexpr std::int64_t kSamples = 5, kPoints = 300;
  std::vector<double> values;
  std::uint64_t seed = 300;
  for (const op::Activation& activation :
       {op::Activation{}, op::Activation{op::Activation::Kind::kLeakyRelu, 0.2}, softplus(4), softplus(0.7)}) {
    for (const auto& hidden : std::vector<std::vector<std::int64_t>>{{8}, {7, 5}}) {
      for (const double radius : {0.02, 0.2}) {
        MeasureCase test{.model = make_model(chain_network(activation, hidden, ++seed)),
                         .inputs = normal_tensor({kSamples, 6}, seed, at::kDouble)};
        if (seed % 2 == 0) test.schema.groups = {{.name = "colour", .columns = {2, 3, 4}, .levels = {"red", "green", "blue"}}};
        const std::vector<double> certified = test.run(certificate(3, radius)).values;
        values.insert(values.end(), certified.begin(), certified.end());
        const MeasureTask task = test.task();
        const auto metric = metrics().make("top_k(k=3)");
        const auto attack = attacks().make("gauntlet(effort=light)");
        const ThreatModel threat = ThreatModel::make({.epsilons = {radius}}, test.schema);
        const AttackResult attacked = attack->run({.model = *test.model,
                                                   .explainer = task.explainer,
                                                   .metric = *metric,
                                                   .threat = threat,
                                                   .samples = {.inputs = task.samples.inputs,
                                                               .targets = task.samples.targets,
                                                               .ids = task.samples.ids,
                                                               .schema = share_schema(test.schema)}});
        const at::Tensor clean = task.explainer.attribute(task.explain_task()).maps;
        for (std::int64_t b = 0; b < kSamples; ++b) {
          const double proven = certified[static_cast<std::size_t>(b)];
          EXPECT_LE(proven, attacked.samples[static_cast<std::size_t>(b)].value) << "seed " << seed << ", sample " << b;
          ExplainTask around = task.explain_task();
          around.samples.inputs = points_in_ball(test.inputs[b], radius, kPoints, seed);
          around.samples.targets = task.samples.targets[b].expand({kPoints}).contiguous();
          around.samples.ids = at::arange(kPoints, at::kLong);
          const auto top = [](const at::Tensor& maps) {
            return at::zeros_like(maps).scatter(1, std::get<1>(maps.topk(3, 1)), 1.0);
          };
          const at::Tensor kept = (top(task.explainer.attribute(around).maps) * top(clean.slice(0, b, b + 1))).sum(1).min() / 3.0;
          EXPECT_LE(proven, kept.item<double>() + 1e-12) << "seed " << seed << ", sample " << b;
        }
      }
    }
  }
  EXPECT_GT(mean_of(values), 0.5) << "certificates that say nothing are easily kept";
  EXPECT_LT(mean_of(values), 0.95);
}

TEST(CertifiedOverlap, IsOneAtTheSampleItselfAndFallsWithTheRadius) {
  for (const auto& activation : {op::Activation{}, softplus(2)}) {
    for (const auto& hidden : std::vector<std::vector<std::int64_t>>{{8}, {7, 5}}) {
      MeasureCase test{.model = make_model(chain_network(activation, hidden, 500)),
                       .inputs = normal_tensor({12, 6}, 501, at::kDouble)};
      std::vector<double> before = test.run(certificate(3, 0)).values;
      EXPECT_EQ(before, std::vector<double>(12, 1.0));
      for (const double radius : {0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0}) {
        const std::vector<double> now = test.run(certificate(3, radius)).values;
        for (std::size_t b = 0; b < 12; ++b) EXPECT_LE(now[b], before[b]);
        before = now;
      }
      EXPECT_LT(mean_of(before), 0.5);
    }
  }
}

TEST(CertifiedOverlap, ALinearModelKeepsItsTopEverywhere) {
  MeasureCase test{.model = linear_model(normal_tensor({2, 12}, 1), normal_tensor({2}, 2)), .inputs = normal_tensor({3, 12}, 3)};
  EXPECT_EQ(test.run(certificate(5, 1000)).values, std::vector<double>(3, 1.0));
}

// Of a last layer: the first class's logit is 0.
at::Tensor margin_weight(const std::vector<double>& second) {
  const at::Tensor row = at::tensor(second, at::kDouble);
  return at::stack({at::zeros_like(row), row});
}

// A unit that is always on, and one that switches 0.1 away from x = 0.
std::unique_ptr<Model> one_switch(const std::vector<double>& always, const std::vector<double>& switched) {
  const auto row = [](const std::vector<double>& values) { return at::tensor(values, at::kDouble); };
  const double length = row(switched).norm().item<double>();
  Network network;
  network.add("input", op::Input{});
  network.add("hidden", op::Linear{at::stack({row(always), row(switched)}), at::tensor({500.0, -0.1 * length}, at::kDouble)});
  network.add("act", op::Activation{});
  network.add("out", op::Linear{margin_weight({1, 1}), at::zeros({2}, at::kDouble)});
  return make_model(std::move(network));
}

TEST(CertifiedOverlap, FallsWhereTheBallReachesAKink) {
  // Beyond the kink feature 2 is first, and 1 leaves the top two.
  MeasureCase test{.model = one_switch({4, 3, 2, 1}, {0, 0, 5, 0}), .inputs = at::zeros({1, 4}, at::kDouble)};
  EXPECT_EQ(test.run(certificate(2, 0.0999)).values[0], 1);
  EXPECT_EQ(test.run(certificate(2, 0.1001)).values[0], 0.5);
}

// Ranges of single features, 4 to 9 and 3 to 8 and so on, would prove nothing.
TEST(CertifiedOverlap, PairsThatMoveAlikeAreBoundedJointly) {
  MeasureCase test{.model = one_switch({4, 3, 2, 1}, {5, 5, 5, 5}), .inputs = at::zeros({1, 4}, at::kDouble)};
  EXPECT_EQ(test.run(certificate(2, 10)).values[0], 1);
  // A common fall below zero turns the order of magnitudes round: 4, 3, 2, 1 is -1, -2, -3, -4 beyond the kink.
  test.model = one_switch({4, 3, 2, 1}, {-5, -5, -5, -5});
  EXPECT_EQ(test.run(certificate(2, 0.2)).values[0], 0);
}

TEST(CertifiedOverlap, TiesProveNothing) {
  const at::Tensor weight = margin_weight({3.0, 2.0, -2.0, 1.0, 0.0});
  MeasureCase test{.model = linear_model(weight, at::zeros({2}, at::kDouble)), .inputs = at::ones({1, 5}, at::kDouble)};
  EXPECT_EQ(test.run(certificate(2, 0.1)).values[0], 0.5);  // the second and third feature
  EXPECT_EQ(test.run(certificate(1, 0.1)).values[0], 1);
  test.model = linear_model(0 * weight, at::zeros({2}, at::kDouble));
  EXPECT_EQ(test.run(certificate(2, 0.1)).values[0], 0);
  EXPECT_NEAR(test.run(certificate(3, 0.1)).values[0], 1.0 / 3, 1e-12) << "there are two others: one of three stays anyway";
}

// With more than two classes the smooth network's bounds are those of no_swap_radius, which is where the first pair is open.
TEST(CertifiedOverlap, AgreesWithTheNoSwapRadius) {
  MeasureCase test{
      .model = mlp_model(
          {.features = 8, .hidden = 9, .classes = 3, .activation = {op::Activation::Kind::kTanh, 0}, .type = at::kDouble}),
      .inputs = normal_tensor({6, 8}, 93, at::kDouble)};
  const std::vector<double> radii = test.run("no_swap_radius(k=3)").values;
  for (std::size_t b = 0; b < 6; ++b) {
    EXPECT_EQ(test.run(certificate(3, radii[b] * 0.999)).values[b], 1);
    EXPECT_LT(test.run(certificate(3, radii[b] * 1.001)).values[b], 1);
  }
}

// Whether intervals alone prove that the top k stays whole, [B].
at::Tensor whole_by_intervals(const Model& model, const at::Tensor& inputs, std::int64_t k, double radius) {
  const MarginBounds ball = MarginChain(*model.network()).bounds(inputs.unsqueeze(0), radius);
  const at::Tensor gaps = pair_lower_bounds(
      {.rows = ball.rows, .middle = ball.middle, .half = ball.half, .signs = at::where(ball.gradient < 0, -1.0, 1.0)})[0];
  const at::Tensor magnitude = ball.gradient[0].abs();
  const at::Tensor top = at::zeros_like(magnitude).scatter(1, std::get<1>(magnitude.topk(k, 1)), 1.0) > 0;
  return (gaps > 0).logical_or((top.unsqueeze(2) & ~top.unsqueeze(1)).logical_not()).flatten(1).all(1);
}

TEST(CertifiedOverlap, SmoothNetworksGainFromTheirCurvature) {
  MeasureCase test{.model = mlp_model({.features = 12, .hidden = 32, .activation = softplus(2), .type = at::kDouble}),
                   .inputs = normal_tensor({60, 12}, 94, at::kDouble).mul_(0.5)};
  const std::vector<double> certified = test.run(certificate(4, 0.05)).values;
  const at::Tensor whole = whole_by_intervals(*test.model, test.inputs, 4, 0.05);
  std::int64_t gained = 0;
  for (std::int64_t b = 0; b < 60; ++b) {
    const bool proven = certified[static_cast<std::size_t>(b)] == 1, alone = whole[b].item<bool>();
    EXPECT_GE(proven, alone);
    gained += proven && !alone;
  }
  EXPECT_GT(gained, 5);
}

TEST(CertifiedOverlap, IsAboutProjectedGradientsWhereThereAreGroups) {
  // The group's mean, which no valid row feels, is what makes its features first.
  const at::Tensor weight = margin_weight({9.0, 9.0, 9.2, 1.0, 1.1});
  MeasureCase test{.model = linear_model(weight, at::zeros({2}, at::kDouble)), .inputs = at::ones({1, 5}, at::kDouble)};
  test.schema.groups = {{.name = "colour", .columns = {0, 1, 2}, .levels = {"red", "green", "blue"}}};
  EXPECT_EQ(test.run(certificate(3, 1)).values[0], 1) << "features 4, 3 and 2";
  EXPECT_EQ(test.run(certificate(3, 1, ",project=none")).values[0], 1) << "features 2, 0 and 1";
  EXPECT_EQ(test.run(certificate(4, 1)).values[0], 0.75) << "red and green are alike";
  EXPECT_EQ(test.run(certificate(4, 1, ",project=none")).values[0], 1);
}

TEST(CertifiedOverlap, RefusesWhatItCannotBound) {
  MeasureCase test{.model = mlp_model({.classes = 3}), .inputs = normal_tensor({2, 12}, 33)};
  EXPECT_ERROR(test.check("certified_overlap"), kUsage, "has relu at node 'act'");
  EXPECT_ERROR(test.check("certified_overlap"), kUsage, "it has 3 classes in place of two");
  test.model = mlp_model({.classes = 3, .activation = softplus(2)});
  EXPECT_NO_THROW(test.check("certified_overlap"));
  EXPECT_ERROR(test.check("certified_overlap(k=12)"), kUsage, "choose k < 12");
  test.model = make_model([](const at::Tensor& x) { return x; }, Capabilities{}, at::kCPU);
  EXPECT_ERROR(test.check("certified_overlap"), kUsage, "layers that it does not show");
  MeasureCase picture{.model = make_model(testing_support::conv_network({}, at::kFloat, 2)),
                      .inputs = normal_tensor({1, 2, 5, 4}, 34)};
  EXPECT_ERROR(picture.check("certified_overlap"), kUsage, "the sum of 2 elements");
}

}  // namespace
}  // namespace holdfast::measure
