// gauntlet for every explainer that people attack: never better for the defender than its own components or than random points.
#include <cmath>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "../../src/attack/gauntlet/component.h"
#include "../../src/attack/ledger.h"
#include "attack_case.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::mean_value;
using testing_support::mlp_model;
using testing_support::normal_tensor;

constexpr std::int64_t kExplained = 8;
constexpr double kLight = 1.0 / 3;
constexpr double kOneSwap = 1.0 / (kExplained * 4);  // the metric is top_k(k=4)

AttackCase case_of(const std::string& explainer) {
  AttackCase test;
  test.explainer = explainer;
  test.model = mlp_model({.features = 12, .hidden = 24, .classes = 3});
  test.inputs = normal_tensor({kExplained, 12}, 61).add_(0.5);
  test.ids = at::arange(kExplained, at::kLong);
  test.threat = ThreatModel::make({.epsilons = {0.8}}, test.schema);
  return test;
}

// Each component by itself, from the clean inputs: with all the work that it gets in the whole, or as in one of its stages.
std::map<std::string, AttackResult> alone(const AttackTask& task, std::optional<gauntlet::Stage> stage) {
  std::map<std::string, AttackResult> results;
  ExplainTask at_clean{.model = task.model,
                       .samples = {.inputs = task.samples.inputs,
                                   .targets = task.samples.targets,
                                   .ids = task.samples.ids,
                                   .schema = task.samples.schema},
                       .seed = task.seed};
  at_clean.keep_signs = true;
  const Explanation clean = task.explainer.attribute(at_clean);
  for (const auto& component : gauntlet::components()) {
    Ledger ledger(task, clean, Select::kWorst);
    gauntlet::AttackState state(task, ledger, clean, kLight);
    if (stage) state.begin(*stage);
    if (!component->fits(state)) continue;
    component->run(state);
    results.emplace(component->name(), ledger.finish());
  }
  return results;
}

class GauntletExplainers : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Explainers, GauntletExplainers,
                         testing::Values("saliency", "input_x_gradient", "integrated_gradients(steps=4)",
                                         "smooth_grad(samples=3,sigma=0.2)", "deep_lift", "lrp"));

TEST_P(GauntletExplainers, NeverBetterForTheDefenderThanComponentsOrRandomPoints) {
  AttackCase test = case_of(GetParam());
  const AttackResult whole = test.run("gauntlet(effort=light)");
  EXPECT_LE(mean_value(whole), mean_value(test.run("random(samples=300)")));
  const auto parts = alone(test.task(), std::nullopt);
  ASSERT_TRUE(parts.contains("random") && parts.contains("contrast") && parts.contains("gaps"));
  // In the whole a component's work is shared out over stages, so its walks are not the ones it takes alone. Light effort may
  // then miss one swap of one sample.
  for (const auto& [name, part] : parts) EXPECT_LE(mean_value(whole), mean_value(part) + kOneSwap) << name;
  // In a restart these propose the same points as in the whole, whatever was found before them.
  for (const gauntlet::Stage stage : {gauntlet::Stage::kFirst, gauntlet::Stage::kSecond}) {
    const auto in_stage = alone(test.task(), stage);
    for (const char* name : {"random", "contrast"}) {
      const AttackResult& part = in_stage.at(name);
      EXPECT_LT(mean_value(part), 1) << name << " finds nothing";
      for (std::size_t i = 0; i < whole.samples.size(); ++i)
        EXPECT_LE(whole.samples[i].value, part.samples[i].value) << name << ", sample " << i;
    }
  }
  EXPECT_LT(mean_value(whole), 0.9) << "the case should be worth attacking";
}

// Without gradients only searches are left: for what they cost, they find no less than random points do.
TEST(GauntletWithoutGradients, IsNotWeakerThanRandomPointsOfTheSameCost) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    AttackCase test = case_of("occlusion");
    test.inputs = normal_tensor({24, 12}, 62).add_(0.5);
    test.ids = at::arange(24, at::kLong);
    test.threat = ThreatModel::make({.norm = norm,
                                     .epsilons = {norm == Norm::kL2     ? 0.8
                                                  : norm == Norm::kLinf ? 0.3
                                                                        : 1.6}},
                                    test.schema);
    const AttackResult whole = test.run("gauntlet(effort=light)");
    std::int64_t most = 0;
    for (const SampleOutcome& sample : whole.samples) most = std::max(most, sample.evaluations);
    EXPECT_EQ(most % 13, 0) << "an explanation is 13 passes: one for each of 12 columns and the clean one";
    const double random = mean_value(test.run(fmt::format("random(samples={},from=sphere)", most / 13)));
    EXPECT_LE(mean_value(whole), random) << to_string(norm);
    EXPECT_LT(random, 0.9) << "the case should be worth attacking";
  }
}

// The metric of points under draws of noise that the attack has not seen.
double under_other_noise(const AttackTask& task, const at::Tensor& perturbed) {
  double sum = 0;
  for (std::uint64_t seed = 1000; seed < 1010; ++seed) {
    const auto maps = [&](const at::Tensor& inputs) {
      return task.explainer
          .attribute({.model = task.model,
                      .samples = {.inputs = inputs,
                                  .targets = task.samples.targets,
                                  .ids = task.samples.ids,
                                  .schema = task.samples.schema},
                      .seed = seed})
          .maps.to(at::kDouble)
          .contiguous();
    };
    const at::Tensor clean = maps(task.samples.inputs), moved = maps(perturbed);
    for (std::int64_t i = 0; i < kExplained; ++i) {
      const auto row = [&](const at::Tensor& all) {
        return fold(task.samples.layout(), std::span<const double>(all[i].data_ptr<double>(), 12));
      };
      sum += task.metric.compare({row(clean), *task.samples.schema}, {row(moved), *task.samples.schema}) / (10 * kExplained);
    }
  }
  return sum;
}

TEST(GauntletNoise, ExpectedNoiseBreaksMapsWhateverTheNoise) {
  AttackCase test = case_of("smooth_grad(samples=3,sigma=0.3)");
  const AttackTask task = test.task();
  const AttackResult fixed = attacks().make("gauntlet(effort=light)")->run(task);
  const AttackResult expected = attacks().make("gauntlet(effort=light,noise=expected)")->run(task);
  // Knowing the noise is worth something, and lost when it is drawn again.
  EXPECT_LT(mean_value(fixed), mean_value(expected));
  EXPECT_LT(mean_value(fixed), under_other_noise(task, fixed.perturbed) - 0.05);
  EXPECT_LT(under_other_noise(task, expected.perturbed), under_other_noise(task, fixed.perturbed));
}

TEST(GauntletNoise, WithoutNoiseBothAreTheSameKindOfAttack) {
  AttackCase test = case_of("saliency");
  EXPECT_NEAR(mean_value(test.run("gauntlet(effort=light,noise=expected)")), mean_value(test.run("gauntlet(effort=light)")),
              0.03);
}

}  // namespace
}  // namespace holdfast::attack
