// Every registered attack is held to the contract of attack.h. Attacks are found through the registry.
#include <algorithm>

#include <gtest/gtest.h>

#include "attack_case.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/torch.h"
#include "holdfast/model/linear_chain.h"
#include "inside.h"
#include "support/method_calls.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::for_images;
using testing_support::method_of;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::Rows;
using testing_support::to_rows;
using testing_support::wrong_with;

// Calls that run quickly, and variants that take other code.
const std::vector<std::string> kAttackVariants{
    "random(samples=40)",
    "random(samples=40,from=sphere)",
    "random_sign(steps=40)",
    "random_sign(steps=40,mode=walk,step_size=0.1)",
    "er(steps=25)",
    "er(steps=25,pairs=next-k)",
    "er(steps=25,step_size=0.2)",
    "er(steps=20,start=random,schedule=cosine,momentum=0.75,surrogate=softplus,beta=5)",
    "mse(steps=25)",
    "top_t(steps=25)",
    "top_t(steps=25,t=6,surrogate=none)",
    "mass_center(steps=25)",
    "target(steps=25,region=bottom-right)",
    "lens(steps=25,t=2)",
    "multi(steps=25)",
    "multi(steps=25,pairs=1)",
    "gauntlet(effort=light)",
};

// The variants, and every attack that has none with few steps.
std::vector<std::string> attack_calls() {
  std::vector<std::string> calls = kAttackVariants;
  for (std::string& call : testing_support::calls_beside(calls, attacks(), {{"steps", "25"}, {"samples", "40"}})) {
    calls.push_back(std::move(call));
  }
  return calls;
}

// A net with kinks, images of 3 x 4 pixels in a box, one frozen pixel, three classes, two tiles of seven.
AttackCase boxed_case(Norm norm, const std::string& call) {
  AttackCase test;
  // The exact search is for one gradient; with three classes the probability's is not.
  if (method_of(call) == "exact") test.explainer = "saliency(target=logit)";
  test.model = make_model(for_images(mlp_network({.classes = 3})));
  test.schema = Schema::of(Layout::grid(1, 3, 4));
  for (int i = 0; i < 12; ++i) test.schema.features.push_back({.name = "pixel", .frozen = i == 7});
  test.inputs = normal_tensor({14, 1, 3, 4}, 70).mul_(0.3).add_(0.5).clamp_(0, 1);
  test.ids = at::arange(14, at::kLong);
  const double epsilon = norm == Norm::kL2 ? 0.8 : norm == Norm::kLinf ? 0.3 : 2;
  test.threat = ThreatModel::make({.norm = norm, .epsilons = {epsilon}, .box = std::pair(0.0, 1.0)}, test.schema);
  return test;
}

std::vector<Norm> norms_of(const std::string& call) {
  if (method_of(call) == "exact") return {Norm::kL2, Norm::kLinf};
  return {Norm::kL2, Norm::kLinf, Norm::kL1};
}

class AttackConformance : public testing::TestWithParam<std::string> {};

TEST_P(AttackConformance, StaysInsideWithTheClassUnchanged) {
  for (const Norm norm : norms_of(GetParam())) {
    for (const Select select : {Select::kWorst, Select::kLast}) {
      AttackCase test = boxed_case(norm, GetParam());
      test.select = select;
      const AttackResult result = test.run(GetParam());
      const Verification found = verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, GetParam());
      EXPECT_GT(found.moved, 0) << "an attack that moves nothing shows nothing";
      EXPECT_TRUE(at::equal(result.perturbed.flatten(1).select(1, 7), test.inputs.flatten(1).select(1, 7)));
    }
  }
}

// The same again without our verifier, for every norm, with and without a box and a frozen feature.
TEST_P(AttackConformance, StaysInsideByPlainLoops) {
  for (const Norm norm : norms_of(GetParam())) {
    for (const bool bounded : {true, false}) {
      AttackCase test = boxed_case(norm, GetParam());
      if (!bounded) {
        test.schema.features.clear();
        test.threat = ThreatModel::make({.norm = norm, .epsilons = {test.threat.epsilon}}, test.schema);
      }
      const Rows clean = to_rows(test.inputs), moved = to_rows(test.run(GetParam()).perturbed);
      int changed = 0;
      for (std::size_t b = 0; b < clean.size(); ++b) {
        bool moved_at_all = false;
        EXPECT_EQ(wrong_with(clean[b], moved[b], test.threat, test.schema, *test.model->network(), moved_at_all), "")
            << to_string(norm) << ", sample " << b;
        changed += moved_at_all ? 1 : 0;
      }
      EXPECT_GT(changed, 0);
    }
  }
}

TEST_P(AttackConformance, ReportsTheValueOfWhatItReturns) {
  AttackCase test = boxed_case(Norm::kL2, GetParam());
  const AttackResult result = test.run(GetParam());
  const auto metric = metrics().make(test.metric);
  const auto map = [&](const at::Tensor& maps, std::int64_t b) {
    return fold(test.schema.layout, std::span<const float>(maps.data_ptr<float>() + b * 12, 12));
  };
  double sum = 0;
  for (std::int64_t b = 0; b < 14; ++b) {
    const std::vector<double> original = map(result.original.maps, b), moved = map(result.moved.maps, b);
    const SampleOutcome& outcome = result.samples[static_cast<std::size_t>(b)];
    EXPECT_EQ(outcome.value, metric->compare({original, test.schema}, {moved, test.schema}));
    EXPECT_LE(outcome.value, 1);
    EXPECT_GT(outcome.evaluations, 0);
    if (outcome.value < 1) {
      EXPECT_GT(outcome.first_swap, 0);
      EXPECT_LE(outcome.first_swap, outcome.iteration);
    }
    sum += outcome.value;
  }
  EXPECT_LT(sum, 14) << "the case should be breakable";
  EXPECT_GE(result.original.maps.min().item<float>(), 0) << "the explainer's own maps, magnitudes here";
  // A chain that runs without autograd rounds in another way; all others run the same passes.
  const Network* network = test.model->network();
  const bool is_chain = network != nullptr && LinearChain::of(*network, {}, result.perturbed).has_value();
  const double apart = is_chain ? 1e-6 : 1e-8;
  EXPECT_TRUE(at::allclose(result.moved.logits, test.model->logits(result.perturbed), /*rtol=*/1e-5, apart));
}

TEST_P(AttackConformance, IsDeterministicAndKeyedByTheSamplesNames) {
  AttackCase test = boxed_case(Norm::kL2, GetParam());
  const AttackResult first = test.run(GetParam()), again = test.run(GetParam());
  EXPECT_TRUE(at::equal(first.perturbed, again.perturbed));
  EXPECT_TRUE(at::equal(first.moved.maps, again.moved.maps));

  // Backwards, each sample under its own name: the same results, backwards.
  AttackCase backwards = boxed_case(Norm::kL2, GetParam());
  backwards.inputs = test.inputs.flip(0).contiguous();
  backwards.ids = test.ids.flip(0).contiguous();
  EXPECT_LE((backwards.run(GetParam()).perturbed.flip(0) - first.perturbed).abs().max().item<double>(), 1e-5);

  // Where the seed matters the names do, and nowhere else.
  AttackCase seeded = boxed_case(Norm::kL2, GetParam()), renamed = boxed_case(Norm::kL2, GetParam());
  seeded.seed += 1;
  renamed.ids = test.ids + 1000;
  const bool random = !at::equal(seeded.run(GetParam()).perturbed, first.perturbed);
  EXPECT_EQ(random, !at::equal(renamed.run(GetParam()).perturbed, first.perturbed));
  if (method_of(GetParam()) == "random") {
    EXPECT_TRUE(random);
  }
}

AttackCase in_double(AttackCase test) {
  test.model = test.model->in_double();
  test.inputs = test.inputs.to(at::kDouble);
  return test;
}

// Tiles of one and of seven: the batch must not matter beyond rounding, which attacks on kinks magnify.
TEST_P(AttackConformance, ABatchIsItsTiles) {
  AttackCase whole = in_double(boxed_case(Norm::kL2, GetParam()));
  const AttackResult all = whole.run(GetParam());
  for (const std::int64_t tile : {1, 7}) {
    for (std::int64_t begin = 0; begin < 14; begin += tile) {
      AttackCase part = in_double(boxed_case(Norm::kL2, GetParam()));
      part.keep(begin, begin + tile);
      const AttackResult some = part.run(GetParam());
      EXPECT_LE((some.perturbed - all.perturbed.slice(0, begin, begin + tile)).abs().max().item<double>(), 1e-6);
      for (std::int64_t b = 0; b < tile; ++b) {
        const SampleOutcome &one = some.samples[static_cast<std::size_t>(b)],
                            &other = all.samples[static_cast<std::size_t>(begin + b)];
        EXPECT_EQ(one.value, other.value);
        EXPECT_EQ(one.iteration, other.iteration);
        EXPECT_EQ(one.label_flips, other.label_flips);
        EXPECT_EQ(one.evaluations, other.evaluations);
      }
    }
  }
}

TEST_P(AttackConformance, WhereNothingMayMoveNothingDoes) {
  AttackCase test = boxed_case(Norm::kL2, GetParam());
  test.threat.epsilon = 0;
  EXPECT_TRUE(at::equal(test.run(GetParam()).perturbed, test.inputs)) << "epsilon 0";
  test = boxed_case(Norm::kL2, GetParam());
  test.threat.frozen = std::vector<bool>(12, true);
  const AttackResult frozen = test.run(GetParam());
  EXPECT_TRUE(at::equal(frozen.perturbed, test.inputs)) << "everything frozen";
  for (const SampleOutcome& outcome : frozen.samples) EXPECT_EQ(outcome.evaluations, 1) << "the clean explanation";
}

TEST_P(AttackConformance, NeverFindsLessThanItStartsWith) {
  AttackCase test = boxed_case(Norm::kL2, GetParam());
  const AttackResult known = test.run("random(samples=40,from=sphere)");
  AttackTask task = test.task();
  task.start = known.perturbed;
  const AttackResult result = attacks().make(GetParam())->run(task);
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < known.samples.size(); ++i) {
    EXPECT_LE(result.samples[i].value, known.samples[i].value);
    if (result.samples[i].component != "start") continue;
    ++kept;
    EXPECT_EQ(result.samples[i].iteration, 0);
  }
  EXPECT_GT(kept, 0) << "some attacks find no worse than 40 random points";
  EXPECT_LT(testing_support::mean_value(known), 1);
}

TEST_P(AttackConformance, ComparingAllFeaturesIsDefined) {
  AttackCase test = boxed_case(Norm::kL2, GetParam());
  test.metric = "top_k(k=12)";
  for (const SampleOutcome& outcome : test.run(GetParam()).samples) {
    EXPECT_EQ(outcome.value, 1);
    EXPECT_EQ(outcome.first_swap, -1);
    EXPECT_EQ(outcome.evaluations, 1) << "nothing can be broken: the clean explanation is enough";
  }
}

TEST_P(AttackConformance, ExplainsTheTargetsThatWereGiven) {
  AttackCase test = boxed_case(Norm::kL2, GetParam());
  test.targets = at::full({14}, 2, at::kLong);
  const AttackResult result = test.run(GetParam());
  const auto explainer = explainers().make(test.explainer);
  const Explanation expected =
      explainer->attribute({.model = *test.model, .samples = {.inputs = test.inputs, .targets = test.targets, .ids = test.ids}});
  EXPECT_TRUE(at::allclose(result.original.maps, expected.maps));
  EXPECT_NO_THROW(verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, GetParam()));
}

TEST_P(AttackConformance, LeavesTheInputsAsTheyWere) {
  AttackCase test = boxed_case(Norm::kL2, GetParam());
  const at::Tensor before = test.inputs.clone();
  (void)test.run(GetParam());
  EXPECT_TRUE(at::equal(test.inputs, before));
}

TEST_P(AttackConformance, NameIsACallThatMakesTheSameAttack) {
  const std::string name = attacks().make(GetParam())->name();
  EXPECT_EQ(attacks().make(name)->name(), name);
}

INSTANTIATE_TEST_SUITE_P(Attacks, AttackConformance, testing::ValuesIn(attack_calls()),
                         [](const auto& row) { return method_of(row.param) + "_" + std::to_string(row.index); });

}  // namespace
}  // namespace holdfast::attack
