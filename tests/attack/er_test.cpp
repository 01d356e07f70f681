#include <cmath>

#include <gtest/gtest.h>

#include "attack_case.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/torch.h"
#include "support/errors.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::mlp_model;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::softplus;

// The papers' attack as one would first write it: one sample, plain softmax, sorted ranks, the sum over pairs spelled out.
struct Reference {
  const Model& model;
  std::int64_t k, steps;
  double step;
  bool next_k = false;

  at::Tensor saliency(const at::Tensor& x, std::int64_t c, bool create_graph) const {
    const at::Tensor p = at::softmax(model.logits(x), 1)[0][c];
    return torch::autograd::grad({p}, {x}, {}, true, create_graph)[0][0];
  }

  // All iterates, the clean point first.
  std::vector<at::Tensor> iterates(const at::Tensor& clean) const {
    at::Tensor x = clean.unsqueeze(0).clone().requires_grad_();
    const std::int64_t c = model.logits(x).argmax(1).item<std::int64_t>();
    const at::Tensor map = saliency(x, c, false);
    const at::Tensor order = map.abs().argsort(true, 0, true);  // descending
    const at::Tensor signs = map.sign();
    const std::int64_t n = map.size(0);
    std::vector<at::Tensor> all{clean};
    for (std::int64_t t = 0; t < steps; ++t) {
      const at::Tensor ranked = (saliency(x, c, true) * signs).index_select(0, order);
      at::Tensor objective = at::zeros({}, x.options());
      for (std::int64_t i = 0; i < k; ++i) {
        for (std::int64_t j = k; j < (next_k ? 2 * k : n); ++j) objective = objective + (ranked[i] - ranked[j]);
      }
      const at::Tensor g = torch::autograd::grad({objective}, {x})[0];
      x = (x - step * g / g.norm()).detach().requires_grad_();
      all.push_back(x.detach()[0]);
    }
    return all;
  }
};

double share_kept(const Model& model, const at::Tensor& clean, const at::Tensor& x, std::int64_t k) {
  const Reference reference{model, k, 0, 0};
  const auto top = [&](const at::Tensor& point) {
    const at::Tensor input = point.unsqueeze(0).clone().requires_grad_();
    const std::int64_t c = model.logits(clean.unsqueeze(0)).argmax(1).item<std::int64_t>();
    return std::get<1>(reference.saliency(input, c, false).abs().topk(k));
  };
  return at::isin(top(clean), top(x)).to(at::kDouble).mean().item<double>();
}

bool same_class(const Model& model, const at::Tensor& a, const at::Tensor& b) {
  return at::equal(model.logits(a.unsqueeze(0)).argmax(1), model.logits(b.unsqueeze(0)).argmax(1));
}

// In double precision, so that two ways of computing the same thing stay together for forty steps.
AttackCase smooth_case() {
  AttackCase test;
  test.model = mlp_model({.classes = 3, .activation = softplus(3), .type = at::kDouble});
  test.inputs = test.inputs.to(at::kDouble);
  test.threat.epsilon = 2;
  return test;
}

class ErAgainstReference : public testing::TestWithParam<const char*> {};

TEST_P(ErAgainstReference, LastPreservedIterateIsTheSame) {
  AttackCase test = smooth_case();
  test.select = Select::kLast;
  const bool next_k = std::string(GetParam()) == "next-k";
  const AttackResult result = test.run(std::string("er(steps=40,step_size=0.05,pairs=") + GetParam() + ")");
  std::int64_t flipped = 0;
  for (std::int64_t b = 0; b < test.inputs.size(0); ++b) {
    const auto iterates = Reference{*test.model, 4, 40, 0.05, next_k}.iterates(test.inputs[b]);
    std::size_t last = 0;
    while (last + 1 < iterates.size() && same_class(*test.model, iterates[0], iterates[last + 1])) ++last;
    flipped += last + 1 < iterates.size();
    const SampleOutcome& outcome = result.samples[static_cast<std::size_t>(b)];
    EXPECT_EQ(outcome.iteration, static_cast<std::int64_t>(last));
    EXPECT_EQ(outcome.label_flips, last + 1 < iterates.size() ? 1 : 0);
    EXPECT_LE((result.perturbed[b] - iterates[last]).abs().max().item<double>(), 1e-9);
    EXPECT_EQ(outcome.value, share_kept(*test.model, test.inputs[b], iterates[last], 4));
  }
  EXPECT_GT(flipped, 0) << "the case should show a label flip";
  EXPECT_LT(flipped, test.inputs.size(0));
}

TEST_P(ErAgainstReference, WorstPreservedIterateIsTheSame) {
  AttackCase test = smooth_case();
  const bool next_k = std::string(GetParam()) == "next-k";
  const AttackResult result = test.run(std::string("er(steps=40,step_size=0.05,pairs=") + GetParam() + ")");
  for (std::int64_t b = 0; b < test.inputs.size(0); ++b) {
    const auto iterates = Reference{*test.model, 4, 40, 0.05, next_k}.iterates(test.inputs[b]);
    double worst = 1;
    std::size_t at = 0;
    std::int64_t flips = 0, first_swap = -1;
    for (std::size_t t = 1; t < iterates.size() && worst > 0; ++t) {
      if (!same_class(*test.model, iterates[0], iterates[t])) {
        ++flips;
        continue;
      }
      const double value = share_kept(*test.model, test.inputs[b], iterates[t], 4);
      if (value < 1 && first_swap < 0) first_swap = static_cast<std::int64_t>(t);
      if (value < worst) {
        worst = value;
        at = t;
      }
    }
    const SampleOutcome& outcome = result.samples[static_cast<std::size_t>(b)];
    EXPECT_EQ(outcome.value, worst);
    EXPECT_EQ(outcome.iteration, static_cast<std::int64_t>(at));
    EXPECT_EQ(outcome.label_flips, flips);
    EXPECT_EQ(outcome.first_swap, first_swap);
    EXPECT_LE((result.perturbed[b] - iterates[at]).abs().max().item<double>(), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, ErAgainstReference, testing::Values("all", "next-k"),
                         [](const auto& row) { return std::string(row.param) == "all" ? "All" : "NextK"; });

// A binary net scaled until every probability is 1 in float32: its steps must be those of the net in double precision.
TEST(Er, SaturatedProbabilitiesDoNotBreakTheDirection) {
  AttackCase test;
  test.model = mlp_model({.activation = softplus(3), .gain = 100});
  test.select = Select::kLast;
  const at::Tensor p = std::get<0>(at::softmax(test.model->logits(test.inputs), 1).max(1));
  ASSERT_GT((p == 1).sum().item<std::int64_t>(), 5) << "the case should be saturated";
  const at::Tensor moved = test.run("er(steps=10)").perturbed;

  AttackCase exact;
  exact.model = test.model->in_double();
  exact.inputs = test.inputs.to(at::kDouble);
  exact.select = Select::kLast;
  const at::Tensor expected = exact.run("er(steps=10)").perturbed;
  EXPECT_GT(exact.threat.distance(expected, exact.inputs).min().item<double>(), 0.1);
  EXPECT_LE((moved.to(at::kDouble) - expected).abs().max().item<double>(), 1e-4);
}

TEST(Er, ALabelFlipAtTheFirstStepLeavesTheCleanInput) {
  AttackCase test;
  test.model = mlp_model({.classes = 3, .activation = softplus(3)});
  test.threat.epsilon = 20;
  for (const Select select : {Select::kWorst, Select::kLast}) {
    test.select = select;
    const AttackResult result = test.run("er(steps=1)");
    std::int64_t flipped = 0;
    for (std::int64_t b = 0; b < test.inputs.size(0); ++b) {
      const SampleOutcome& outcome = result.samples[static_cast<std::size_t>(b)];
      if (outcome.label_flips == 0) continue;
      ++flipped;
      EXPECT_TRUE(at::equal(result.perturbed[b], test.inputs[b]));
      EXPECT_EQ(outcome.value, 1);
      EXPECT_EQ(outcome.iteration, 0);
    }
    EXPECT_GT(flipped, 0) << "a step of 20 should flip some";
  }
}

TEST(Er, StopsASampleAtItsFirstFlipOnlyForTheLastIterate) {
  AttackCase test = smooth_case();
  test.select = Select::kLast;
  const AttackResult last = test.run("er(steps=40)");
  test.select = Select::kWorst;
  const AttackResult worst = test.run("er(steps=40)");
  bool any_flip = false;
  for (std::size_t b = 0; b < last.samples.size(); ++b) {
    any_flip = any_flip || last.samples[b].label_flips > 0;
    EXPECT_LE(last.samples[b].label_flips, 1);
    EXPECT_LE(worst.samples[b].value, last.samples[b].value)
        << "the worst preserved iterate includes the last one before the flip";
    if (last.samples[b].label_flips == 1) {
      EXPECT_EQ(last.samples[b].evaluations, 1 + 3 * (last.samples[b].iteration + 1));
    }
  }
  EXPECT_TRUE(any_flip) << "the case should show a label flip";
}

TEST(Er, CountsOneForwardOneGradientAndOneDoubleBackwardAnIteration) {
  AttackCase test;
  test.metric = "l2";  // it has no end, so no sample is done early
  std::int64_t forwards = 0;
  const Network network = test.model->network()->clone();
  test.model = make_model(
      [&forwards, &network](const at::Tensor& x) {
        ++forwards;
        return network.logits(x);
      },
      Capabilities{}, at::kCPU);
  const AttackTask task = test.task();
  forwards = 0;
  const AttackResult result = attacks().make("er(k=4,steps=20)")->run(task);
  // 20 iterations, the clean point, and the two explanations that are returned.
  EXPECT_EQ(forwards, 20 + 1 + 2);
  EXPECT_EQ(result.samples[0].evaluations, 1 + 3 * 20);
}

TEST(Er, TraceFollowsTheBestPointAndHasOneValueAnIteration) {
  AttackCase test;
  test.trace = true;
  test.threat.epsilon = 3;
  const AttackResult result = test.run("er(steps=25)");
  for (const SampleOutcome& outcome : result.samples) {
    ASSERT_EQ(outcome.trace.size(), 25U);
    for (std::size_t t = 1; t < 25; ++t) EXPECT_LE(outcome.trace[t], outcome.trace[t - 1]);
    EXPECT_EQ(outcome.trace.back(), outcome.value);
    if (outcome.iteration > 0) {
      EXPECT_EQ(outcome.trace[static_cast<std::size_t>(outcome.iteration) - 1], outcome.value);
    }
    if (outcome.first_swap > 1) {
      EXPECT_EQ(outcome.trace[static_cast<std::size_t>(outcome.first_swap) - 2], 1);
    }
  }
}

TEST(Er, LinfStepsAreSigns) {
  AttackCase test;
  test.threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {0.3}}, test.schema);
  test.select = Select::kLast;
  const at::Tensor move = (test.run("er(steps=1)").perturbed - test.inputs).abs();
  const at::Tensor moved_rows = move.amax(1) > 0;
  ASSERT_TRUE(moved_rows.any().item<bool>());
  EXPECT_LE((move.index({moved_rows}) - 0.3).abs().max().item<double>(), 1e-6);
}

TEST(Er, PixelsOfAnImageShareTheWeightOfTheirChannels) {
  AttackCase test;
  Network network;
  network.add("input", op::Input{});
  network.add("flat", op::Flatten{});
  const Network tail = mlp_network({.features = 18, .activation = softplus(2)});
  for (std::size_t i = 1; i < tail.nodes().size(); ++i) network.add(tail.nodes()[i].name, tail.nodes()[i].operation);
  test.model = make_model(network);
  test.schema = Schema::of(Layout::grid(2, 3, 3));
  test.inputs = normal_tensor({5, 2, 3, 3}, 60);
  test.ids = at::arange(5, at::kLong);
  test.threat = ThreatModel::make({.epsilons = {2}}, test.schema);
  test.metric = "top_k(k=2)";
  const AttackResult result = test.run("er(steps=40)");
  double sum = 0;
  for (const SampleOutcome& outcome : result.samples) sum += outcome.value;
  EXPECT_LT(sum, 5) << "at least one pixel set should break";
  EXPECT_EQ(result.perturbed.sizes(), test.inputs.sizes());
  EXPECT_NO_THROW(verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, "er"));
}

TEST(Er, PresetsAreThePapersBudgets) {
  EXPECT_EQ(attacks().options("er(preset=tabular)").integer("steps"), 1000);
  EXPECT_EQ(attacks().options("er(preset=tabular)").real("step_size"), 1e-3);
  EXPECT_EQ(attacks().options("er(preset=cifar10)").real("step_size"), 5e-2);
  EXPECT_EQ(attacks().options("er(preset=image,steps=7)").integer("steps"), 7);
}

TEST(Er, RefusesBeforeAnyWork) {
  AttackCase test;
  EXPECT_ERROR(test.check("er(k=40)"), kUsage, "the map has 12 features; choose k <= 12");
  test.metric = "top_k(k=40)";
  EXPECT_ERROR(test.check("er"), kUsage, "top_k(k=40): the map has 12 features; choose k <= 12");
  test.metric = "top_k(k=4)";
  test.schema = Schema::of(Layout::vector(11));
  EXPECT_ERROR(test.check("er"), kInput, "the samples have shape [12], the schema describes [11]");
  test.schema = Schema::of(Layout::vector(12));
  test.model = make_model([](const at::Tensor& x) { return x; }, Capabilities{.double_backward = false}, at::kCPU);
  EXPECT_ERROR(test.check("er"), kUsage, "cannot be differentiated twice; use gauntlet or random");
  EXPECT_NO_THROW(test.check("random"));
}

}  // namespace
}  // namespace holdfast::attack
