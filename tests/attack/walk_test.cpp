#include "../../src/attack/walk.h"

#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "../../src/attack/draw.h"
#include "attack_case.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "plain_walk.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::PlainWalk;
using testing_support::softplus;

TEST(Walk, StepsFallOnAHalfCosine) {
  const WalkRules rules{.steps = 11, .first_step = 0.5, .last_step = 0.1};
  EXPECT_DOUBLE_EQ(rules.step_length(0), 0.5);
  EXPECT_DOUBLE_EQ(rules.step_length(5), 0.3);
  EXPECT_DOUBLE_EQ(rules.step_length(10), 0.1);
  EXPECT_EQ((WalkRules{.steps = 1, .first_step = 0.5, .last_step = 0.1}.step_length(0)), 0.5);
}

// Descent of the first feature's map, with what came before.
TEST(Walk, MomentumKeepsAShareOfTheScaledGradientsBefore) {
  AttackCase test;
  test.model = mlp_model({.activation = softplus(2), .type = at::kDouble});
  test.inputs = test.inputs.to(at::kDouble);
  test.threat = ThreatModel::make({.epsilons = {5}}, test.schema);
  test.metric = "top_k(k=12)";  // nothing is done early
  test.select = Select::kLast;
  const AttackTask task = test.task();
  const WalkRules rules{.steps = 6, .first_step = 0.05, .last_step = 0.05, .momentum = 0.6};
  Ledger ledger(task, task.explainer.attribute(explain_at(task, task.samples.inputs)), Select::kLast);
  const at::Tensor first = at::zeros_like(task.samples.inputs).index_put_({at::indexing::Slice(), 0}, 1.0);
  const auto descent = fixed_cotangent(first);
  walk(task, ledger, *descent, rules, Walkers::of(task));
  const AttackResult result = ledger.finish();

  const PlainWalk plain{.model = *test.model, .direction = *test.model, .epsilon = 5, .step = 0.05};
  for (std::int64_t b = 0; b < task.samples.inputs.size(0); ++b) {
    at::Tensor x = task.samples.inputs[b], velocity = at::zeros_like(x);
    const std::int64_t c = plain.label(x);
    for (std::int64_t t = 0; t < result.samples[static_cast<std::size_t>(b)].iteration; ++t) {
      const at::Tensor g = plain.gradient(x, c, [](const at::Tensor& map) { return map[0]; });
      velocity = 0.6 * velocity + g / g.abs().sum();
      x = plain.step_along(x, velocity);
    }
    EXPECT_LE((result.perturbed[b] - x).abs().max().item<double>(), 1e-9);
  }
}

// Restarts in one batch are the same as restarts one by one: owners, clean points, targets and names follow their rows.
TEST(Walk, SeveralWalkersOfASampleAreSeveralWalks) {
  AttackCase test;
  test.threat.epsilon = 2;
  const AttackTask task = test.task();
  const WalkRules rules{.steps = 12, .first_step = 0.3, .last_step = 0.05, .judge_start = true};
  const auto starts = [&](std::uint64_t restart) {
    return draw_points(task.threat, task.samples.inputs, task.samples.ids, derived_seed(1, "start", restart), false);
  };
  const at::Tensor weights = normal_tensor({9, 12}, 4);
  const std::int64_t passes = task.explainer.evaluations(*task.samples.schema);

  std::vector<double> one_by_one(9, 1.0);
  std::vector<std::int64_t> flips(9, 0);
  for (const std::uint64_t restart : {0, 1, 2}) {
    Ledger ledger(task, task.explainer.attribute(explain_at(task, task.samples.inputs)), Select::kWorst);
    Walkers walkers = Walkers::of(task);
    walkers.points = starts(restart);
    const auto descent = fixed_cotangent(weights);
    walk(task, ledger, *descent, rules, walkers);
    const AttackResult result = ledger.finish();
    for (std::size_t b = 0; b < 9; ++b) {
      one_by_one[b] = std::min(one_by_one[b], result.samples[b].value);
      flips[b] += result.samples[b].label_flips;
      EXPECT_LE(result.samples[b].evaluations, passes * (1 + 3 * 12));
    }
  }
  Ledger ledger(task, task.explainer.attribute(explain_at(task, task.samples.inputs)), Select::kWorst);
  Ledger::Owners owners;
  for (int restart = 0; restart < 3; ++restart) {
    for (std::int64_t b = 0; b < 9; ++b) owners.push_back(b);
  }
  const auto descent = fixed_cotangent(weights.repeat({3, 1}));
  walk(task, ledger, *descent, rules, Walkers::of(task, owners, at::cat({starts(0), starts(1), starts(2)})));
  const AttackResult together = ledger.finish();
  for (std::size_t b = 0; b < 9; ++b) {
    EXPECT_EQ(together.samples[b].value, one_by_one[b]);
    if (one_by_one[b] > 0) {  // else it was done early
      EXPECT_EQ(together.samples[b].label_flips, flips[b]);
      EXPECT_EQ(together.samples[b].evaluations, 3 * passes * (1 + 3 * 12));
    }
  }
  EXPECT_NO_THROW(verify(*test.model, test.threat, test.inputs, together.perturbed, test.ids, "walk"));
}

// |x|^1.5 has a finite gradient and an infinite second derivative at 0.
TEST(Walk, GradientsThatAreNotFiniteAreCountedAndTheirElementsStay) {
  AttackCase test;
  const at::Tensor weight = normal_tensor({2, 12}, 1);
  test.model =
      make_model([&](const at::Tensor& x) { return (x.abs().pow(1.5) + x).matmul(weight.t()); }, Capabilities{}, at::kCPU);
  test.inputs.select(1, 3).zero_();
  test.metric = "top_k(k=12)";  // nothing is done early
  test.select = Select::kLast;
  const AttackResult result = test.run("er(k=4,steps=8)");
  std::int64_t walked = 0;
  for (std::int64_t b = 0; b < 9; ++b) {
    const SampleOutcome& outcome = result.samples[static_cast<std::size_t>(b)];
    EXPECT_EQ(result.perturbed[b][3].item<float>(), 0) << "where the gradient was no number";
    EXPECT_GE(outcome.non_finite, outcome.iteration);
    EXPECT_TRUE(at::isfinite(result.perturbed[b]).all().item<bool>());
    walked += outcome.iteration > 0;
  }
  EXPECT_GT(walked, 4) << "the other elements should move";
}

TEST(Walk, SaysWhereThereWasNoGradientToFollow) {
  AttackCase test;
  test.explainer = "saliency(target=logit)";  // constant inside a linear region
  for (const SampleOutcome& outcome : test.run("er(steps=8)").samples) {
    EXPECT_EQ(outcome.no_gradient, 8);
    EXPECT_EQ(outcome.followed, 0);
  }
  test.explainer = "saliency";
  for (const SampleOutcome& outcome : test.run("er(steps=8)").samples) {
    EXPECT_EQ(outcome.no_gradient, 0);
    EXPECT_GT(outcome.followed, 0);
  }
}

// From anywhere in the ball: after one step of next to nothing the iterate is where it started, far from the clean point.
TEST(Walk, StartsWhereItIsTold) {
  AttackCase test;
  test.select = Select::kLast;
  const AttackResult random = test.run("er(steps=1,step_size=1e-6,start=random)"),
                     near = test.run("er(steps=1,step_size=1e-6,start=near)");
  double farthest_random = 0, farthest_near = 0;
  for (std::int64_t b = 0; b < test.inputs.size(0); ++b) {
    farthest_random = std::max(farthest_random, (random.perturbed[b] - test.inputs[b]).norm().item<double>());
    farthest_near = std::max(farthest_near, (near.perturbed[b] - test.inputs[b]).norm().item<double>());
  }
  EXPECT_GT(farthest_random, 0.3);
  EXPECT_NEAR(farthest_near, 0.005, 1e-4);
}

// Where rows must be valid the walk is between them and what is judged is a valid row, explained by itself.
TEST(Walk, JudgesValidRows) {
  AttackCase test;
  for (int i = 0; i < 12; ++i) test.schema.features.push_back({.name = "column", .low = -5, .high = 5, .step = i < 9 ? 0.25 : 0});
  for (int i = 0; i < 3; ++i) {
    test.schema.features[static_cast<std::size_t>(i)].low = 0;
    test.schema.features[static_cast<std::size_t>(i)].high = 1;
    test.schema.features[static_cast<std::size_t>(i)].step = 0;
  }
  test.schema.groups = {{.name = "level", .columns = {0, 1, 2}}};
  test.explainer = "saliency(project=none)";
  test.inputs = (test.inputs * 4).round() / 4;
  test.inputs.slice(1, 0, 3).zero_();
  for (std::int64_t b = 0; b < 9; ++b) test.inputs[b][b % 3] = 1;
  test.threat = ThreatModel::make({.epsilons = {2.2}, .valid = true}, test.schema);
  for (const char* attack : {"er(steps=20)", "mse(steps=20)", "top_t(steps=20)", "random(samples=40)", "random_sign(steps=20)"}) {
    const AttackResult result = test.run(attack);
    const Verification found = verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, attack);
    EXPECT_GT(found.moved, 0) << attack;
    const at::Tensor grid = result.perturbed.slice(1, 3, 9) * 4;
    EXPECT_LE((grid - grid.round()).abs().max().item<double>(), 1e-5) << attack;
    EXPECT_TRUE(at::equal(result.perturbed.slice(1, 0, 3).sum(1), at::ones({9}))) << attack;
    double sum = 0;
    for (const SampleOutcome& outcome : result.samples) sum += outcome.value;
    EXPECT_LT(sum, 9) << attack;
  }
  test.metric = "l2";  // nothing is done early
  EXPECT_EQ(test.run("er(k=4,steps=10)").samples[0].evaluations, 3 * 10 + 10)
      << "one explanation more a step than in the open, but for the first, which starts at the clean one";
}

}  // namespace
}  // namespace holdfast::attack
