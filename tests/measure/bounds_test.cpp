// Bounds over balls: of derivatives, of thickness, and the radius within which nothing swaps.
#include <cmath>

#include <gtest/gtest.h>

#include "../../src/measure/bounds/ball_bounds.h"
#include "../../src/measure/bounds/hessian.h"
#include "ball_case.h"
#include "holdfast/attack/attack.h"
#include "holdfast/model/activation.h"
#include "measure_case.h"
#include "support/errors.h"

namespace holdfast::measure {
namespace {

using testing_support::MeasureCase;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::part;
using testing_support::points_in_ball;
using testing_support::softplus;
using Kind = op::Activation::Kind;

const std::vector<op::Activation> kSmooth{{Kind::kSoftplus, 0.7}, {Kind::kSoftplus, 5}, {Kind::kSigmoid, 0},
                                          {Kind::kTanh, 0},       {Kind::kGelu, 0},     {Kind::kSilu, 0}};

// Two hidden layers, preprocessing in front.
std::unique_ptr<Model> deep_model(const op::Activation& activation, std::int64_t classes, std::uint64_t seed) {
  const auto weight = [&](std::int64_t out, std::int64_t in, std::uint64_t stream) {
    return normal_tensor({out, in}, 100 * seed + stream, at::kDouble).mul_(1.3 / std::sqrt(static_cast<double>(in)));
  };
  Network network;
  network.add("input", op::Input{});
  network.add("scale", op::Affine{normal_tensor({7}, seed, at::kDouble).abs() + 0.5, normal_tensor({7}, seed + 1, at::kDouble)});
  network.add("first", op::Linear{weight(9, 7, 1), normal_tensor({9}, 100 * seed + 2, at::kDouble)});
  network.add("act1", activation);
  network.add("second", op::Linear{weight(8, 9, 3), {}});
  network.add("act2", activation);
  network.add("out", op::Linear{weight(classes, 8, 4).mul_(2), normal_tensor({classes}, 100 * seed + 5, at::kDouble)});
  return make_model(std::move(network));
}

std::unique_ptr<Model> shallow_model(const op::Activation& activation, std::int64_t classes, std::uint64_t seed) {
  return mlp_model(
      {.features = 7, .hidden = 10, .classes = classes, .seed = seed, .activation = activation, .type = at::kDouble});
}

TEST(SmoothRanges, HoldEveryValueOfADenseGridAndAreMet) {
  for (const op::Activation& activation : kSmooth) {
    for (const int order : {0, 1, 2}) {
      const at::Tensor low = normal_tensor({300}, 1, at::kDouble) * 3,
                       high = low + normal_tensor({300}, 2, at::kDouble).abs() * 3;
      const Enclosure range = activation_range(activation, order, low, high);
      const at::Tensor share = at::linspace(0, 1, 2001, at::kDouble).unsqueeze(1);
      const at::Tensor values = activation_derivative(activation, order, low + share * (high - low));
      const at::Tensor above = values.amax(0) - (range.center + range.radius),
                       below = (range.center - range.radius) - values.amin(0);
      EXPECT_LE(above.max().item<double>(), 1e-12) << to_string(activation) << " order " << order;
      EXPECT_LE(below.max().item<double>(), 1e-12) << to_string(activation) << " order " << order;
      EXPECT_GE(at::minimum(above, below).min().item<double>(), -1e-4) << to_string(activation) << ": wider than it must be";
    }
  }
}

TEST(SmoothRanges, DerivativesAreAutograds) {
  for (const op::Activation& activation : kSmooth) {
    const at::Tensor x = (normal_tensor({50}, 3, at::kDouble) * 3).requires_grad_();
    const at::Tensor first = torch::autograd::grad({activate(activation, x).sum()}, {x}, {}, true, true)[0];
    const at::Tensor second = torch::autograd::grad({first.sum()}, {x})[0];
    EXPECT_TRUE(at::allclose(activation_derivative(activation, 1, x), first, 1e-9, 1e-12)) << to_string(activation);
    EXPECT_TRUE(at::allclose(activation_derivative(activation, 2, x), second, 1e-8, 1e-10)) << to_string(activation);
  }
}

TEST(BallBounds, ABallOfRadiusZeroGivesTheDerivatives) {
  for (const op::Activation& activation : kSmooth) {
    for (const std::int64_t classes : {2, 4}) {
      for (const bool deep : {false, true}) {
        MeasureCase test{.model = deep ? deep_model(activation, classes, 3) : shallow_model(activation, classes, 3),
                         .inputs = normal_tensor({5, 7}, 30, at::kDouble)};
        const MeasureTask task = test.task();
        const BallBounds here = SmoothChain(*test.model, test.inputs.slice(0, 0, 1))
                                    .bounds(test.inputs, task.samples.targets, at::zeros({5}, at::kDouble));
        const Hessian exact(task, "probability");
        EXPECT_TRUE(at::allclose(here.gradient.center, exact.gradient(), 1e-8, 1e-10)) << to_string(activation);
        EXPECT_TRUE(at::allclose(here.hessian.center, exact.whole(), 1e-7, 1e-9)) << to_string(activation);
        EXPECT_LE(here.hessian.radius.max().item<double>(), 1e-8);
      }
    }
  }
}

TEST(BallBounds, HoldTheDerivativesAtEveryPoint) {
  constexpr std::int64_t kPoints = 60;
  for (const op::Activation& activation : kSmooth) {
    for (const std::int64_t classes : {2, 3}) {
      for (const bool deep : {false, true}) {
        const auto model = deep ? deep_model(activation, classes, 4) : shallow_model(activation, classes, 4);
        const at::Tensor center = normal_tensor({1, 7}, 31, at::kDouble);
        const at::Tensor target = predicted_class(model->logits(center));
        for (const double radius : {0.05, 0.4, 2.0}) {
          const BallBounds ball = SmoothChain(*model, center).bounds(center, target, at::full({1}, radius, at::kDouble));
          MeasureCase test{.model = nullptr, .inputs = points_in_ball(center, radius, kPoints, 32)};
          const auto explainer = explainers().make("saliency");
          const MeasureTask task{.model = *model,
                                 .explainer = *explainer,
                                 .samples = {.inputs = test.inputs,
                                             .targets = target.expand({kPoints}).contiguous(),
                                             .ids = at::arange(kPoints, at::kLong),
                                             .schema = share_schema(test.schema)}};
          const Hessian exact(task, "probability");
          const at::Tensor far = (exact.whole() - ball.hessian.center).abs() - ball.hessian.radius;
          EXPECT_LE(far.max().item<double>(), 1e-9) << to_string(activation) << (deep ? " deep " : " shallow ") << radius;
          const at::Tensor off = (exact.gradient() - ball.gradient.center).abs() - ball.gradient.radius;
          EXPECT_LE(off.max().item<double>(), 1e-9) << to_string(activation) << (deep ? " deep " : " shallow ") << radius;
        }
      }
    }
  }
}

TEST(BallBounds, RefuseWhatIsNotAChainOfSmoothLayers) {
  MeasureCase test{.model = mlp_model({}), .inputs = normal_tensor({2, 12}, 33)};
  EXPECT_ERROR(test.check("thickness_bounds(k=3)"), kUsage, "relu at node 'act'");
  EXPECT_ERROR(test.check("no_swap_radius(k=3)"), kUsage, "relu at node 'act'");
  EXPECT_NO_THROW(test.check("thickness_bounds(k=3,by=printed)"));
  const Measurement printed = test.run("thickness_bounds(k=3,by=printed)");
  const std::vector<double> uppers = part(printed, "upper");
  for (const double upper : uppers) EXPECT_TRUE(std::isnan(upper));
  test.model = make_model([](const at::Tensor& x) { return x; }, Capabilities{}, at::kCPU);
  EXPECT_ERROR(test.check("no_swap_radius(k=3)"), kUsage, "layers that it does not show");
  Network network;
  network.add("input", op::Input{});
  network.add("flat", op::Flatten{});
  network.add("out", op::Linear{normal_tensor({2, 12}, 35), {}});
  MeasureCase picture{.model = make_model(std::move(network)), .inputs = normal_tensor({1, 3, 2, 2}, 34)};
  EXPECT_ERROR(picture.check("no_swap_radius(k=3)"), kUsage, "the sum of 3 elements");
}

// Thickness of endpoints in the ball, drawn and worst: those of an attack on the gap.
TEST(ThicknessBounds, TheSoundOnesAreNeverBroken) {
  std::int64_t narrow = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (const double epsilon : {0.05, 0.3, 1.0}) {
      MeasureCase test{.model = seed % 2 == 0 ? deep_model(softplus(2), 2, seed) : shallow_model(softplus(3), 2 + seed % 3, seed),
                       .inputs = normal_tensor({6, 7}, 40 + seed, at::kDouble),
                       .epsilon = epsilon};
      std::vector<at::Tensor> far;
      for (std::int64_t b = 0; b < 6; ++b) far.push_back(points_in_ball(test.inputs[b], epsilon, 30, 50 + seed));
      test.endpoints = at::stack(far);
      for (const std::string pairs : {"k=3", "i=1,j=2", "i=3,j=5"}) {
        const Measurement bounds = test.run("thickness_bounds(" + pairs + ")");
        for (const std::string from : {"ball,endpoints=32,points=16", "given,points=16"}) {
          const Measurement sampled = test.run("thickness(" + pairs + ",form=relaxed,from=" + from + ")");
          for (std::size_t b = 0; b < 6; ++b) {
            const double upper = part(bounds, "upper")[b];
            EXPECT_LE(bounds.values[b], sampled.values[b] + 1e-9);
            EXPECT_GE(upper, sampled.values[b] - 1e-9);
            narrow += upper - bounds.values[b] < 0.5 * part(bounds, "gap")[b];
          }
        }
      }
    }
  }
  EXPECT_GT(narrow, 20) << "bounds that say nothing are easily kept";
}

// The printed lower bound takes the curvature at the sample alone. These nets are nearly flat there and bend a little further
// on: on the way to single points of the ball, which is a distribution too, the mean gap falls below it.
TEST(ThicknessBounds, ThePrintedLowerBoundIsBroken) {
  constexpr std::int64_t kSamples = 10, kPoints = 20;
  std::int64_t broken = 0, kept = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    MeasureCase test{.model = shallow_model(softplus(8), 2, seed),
                     .inputs = normal_tensor({kSamples, 7}, 60 + seed, at::kDouble),
                     .epsilon = 1.0};
    const Measurement printed = test.run("thickness_bounds(k=3,by=printed)"), sound = test.run("thickness_bounds(k=3)");
    std::vector<at::Tensor> far;
    for (std::int64_t b = 0; b < kSamples; ++b) far.push_back(points_in_ball(test.inputs[b], 1.0, kPoints, 50 + seed));
    for (std::int64_t m = 0; m < kPoints; ++m) {
      test.endpoints = at::stack(far).select(1, m);
      const Measurement on_the_way = test.run("thickness(k=3,form=relaxed,from=given,points=64)");
      for (std::size_t b = 0; b < kSamples; ++b) {
        (on_the_way.values[b] < printed.values[b] - 1e-4 ? broken : kept) += 1;
        EXPECT_LE(sound.values[b], on_the_way.values[b] + 1e-9);
        EXPECT_GE(part(printed, "upper")[b], on_the_way.values[b] - 1e-9) << "its upper bound takes the whole ball and holds";
      }
    }
  }
  EXPECT_GT(broken, 0);
  EXPECT_GT(kept, broken) << "most of the time it does hold";
}

TEST(NoSwapRadius, NothingSwapsWithinIt) {
  constexpr std::int64_t kSamples = 6, kTop = 3;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    MeasureCase test{.model = seed % 2 == 0 ? deep_model(softplus(2), 3, seed) : shallow_model(softplus(3), 2, seed),
                     .inputs = normal_tensor({kSamples, 7}, 70 + seed, at::kDouble)};
    // Where the data has one-hot groups, saliency is the projected gradient, and so is what is certified.
    const bool groups = seed >= 3;
    if (groups) test.schema.groups = {{.name = "colour", .columns = {2, 3, 4}, .levels = {"red", "green", "blue"}}};
    const Measurement measured = test.run("no_swap_radius(k=3)");
    if (groups) {
      EXPECT_NE(measured.values, test.run("no_swap_radius(k=3,project=none)").values);
    }
    const MeasureTask task = test.task();
    const auto metric = metrics().make("top_k(k=3)");
    const auto attack = attacks().make("er(steps=40)");
    for (std::int64_t b = 0; b < kSamples; ++b) {
      const double radius = measured.values[static_cast<std::size_t>(b)];
      EXPECT_GT(radius, 0);
      EXPECT_LE(radius, part(measured, "first_order")[static_cast<std::size_t>(b)]);
      // Random points of its sphere, and the worst that an attack finds.
      const at::Tensor points = points_in_ball(test.inputs[b], radius, 300, seed);
      ExplainTask around = task.explain_task();
      around.samples.inputs = points;
      around.samples.targets = task.samples.targets[b].expand({300}).contiguous();
      around.samples.ids = at::arange(300, at::kLong);
      const at::Tensor clean = task.explainer.attribute(task.explain_task()).maps[b];
      const at::Tensor top = std::get<1>(clean.topk(kTop)), maps = task.explainer.attribute(around).maps;
      const at::Tensor mask = at::zeros({7}, at::kBool).index_fill(0, top, true);
      const at::Tensor lowest = maps.masked_fill(~mask, 1e300).amin(1), highest = maps.masked_fill(mask, -1).amax(1);
      EXPECT_TRUE((lowest > highest).all().item<bool>());
      if (groups) continue;
      const ThreatModel threat = ThreatModel::make({.epsilons = {radius}}, test.schema);
      const AttackResult attacked = attack->run({.model = *test.model,
                                                 .explainer = task.explainer,
                                                 .metric = *metric,
                                                 .threat = threat,
                                                 .samples = {.inputs = test.inputs.slice(0, b, b + 1),
                                                             .targets = task.samples.targets.slice(0, b, b + 1),
                                                             .ids = at::zeros({1}, at::kLong),
                                                             .schema = share_schema(test.schema)}});
      EXPECT_EQ(attacked.samples[0].value, 1);
    }
  }
}

// A certificate that is far from the truth is of no use: at a few times the radius an attack does swap.
TEST(NoSwapRadius, IsWithinReachOfTheTruth) {
  MeasureCase test{.model = shallow_model(softplus(2), 2, 9), .inputs = normal_tensor({20, 7}, 80, at::kDouble)};
  const Measurement measured = test.run("no_swap_radius(k=3,limit=100)");
  double share = 0;
  for (std::size_t b = 0; b < 20; ++b) share += measured.values[b] / part(measured, "first_order")[b] / 20;
  EXPECT_GT(share, 0.2) << "of the radius that the curvature at the sample alone would give";
}

}  // namespace
}  // namespace holdfast::measure
