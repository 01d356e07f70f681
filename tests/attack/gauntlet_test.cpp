#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "attack_case.h"
#include "holdfast/core/tile_work.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::mean_value;
using testing_support::mlp_model;
using testing_support::normal_tensor;
using testing_support::softplus;

// 40 samples of 12 features, a ReLU net with one hidden layer.
AttackCase table_case(double epsilon = 1) {
  AttackCase test;
  test.inputs = normal_tensor({40, 12}, 51);
  test.ids = at::arange(40, at::kLong);
  test.threat = ThreatModel::make({.epsilons = {epsilon}}, test.schema);
  return test;
}

TEST(Gauntlet, IsNeverBetterForTheDefenderThanManyRandomPoints) {
  AttackCase test = table_case();
  const AttackResult strong = test.run("gauntlet"), random = test.run("random(samples=1000)");
  EXPECT_LE(mean_value(strong), mean_value(random) - 0.02);
}

TEST(Gauntlet, BeatsThePapersAttackOnNetsWithKinks) {
  AttackCase test = table_case();
  EXPECT_LE(mean_value(test.run("gauntlet(effort=light)")), mean_value(test.run("er(preset=tabular)")) - 0.1);
}

TEST(Gauntlet, IsNotBelowItselfAtASmallerEpsilonWhenItStartsThere) {
  AttackCase small = table_case(0.3), large = table_case(0.6);
  const AttackResult first = small.run("gauntlet(effort=light)");
  AttackTask task = large.task();
  task.start = first.perturbed;
  const AttackResult second = attacks().make("gauntlet(effort=light)")->run(task);
  for (std::size_t i = 0; i < first.samples.size(); ++i) EXPECT_LE(second.samples[i].value, first.samples[i].value);
}

TEST(Gauntlet, SaysWhoFoundWhatAndWhatItCost) {
  AttackCase test = table_case();
  test.explainer = "input_x_gradient";  // with saliency the search of cells would leave nothing to the others
  const AttackResult result = test.run("gauntlet(effort=light)");
  std::set<std::string> ran;
  std::int64_t spent = 0, charged = 0;
  for (const ComponentCost& component : result.components) {
    ran.insert(component.name);
    spent += component.evaluations;
    EXPECT_GE(component.seconds, 0);
  }
  EXPECT_TRUE(ran.contains("random") && ran.contains("gaps") && ran.contains("crossing"));
  EXPECT_FALSE(ran.contains("square"));  // no image
  for (const SampleOutcome& sample : result.samples) {
    charged += sample.evaluations;
    EXPECT_EQ(sample.value < 1, ran.contains(sample.component)) << sample.component;
    EXPECT_GE(sample.late_gain, 0);
  }
  // What is not a component's is the one explanation of the clean sample.
  EXPECT_EQ(charged, spent + static_cast<std::int64_t>(result.samples.size()));
}

TEST(ExpectedEvaluations, AreAboutWhatIsSpentWhereNothingBreaks) {
  AttackCase test = table_case(/*epsilon=*/1e-9);
  test.explainer = "input_x_gradient";
  for (const auto& [call, tolerance] : std::vector<std::pair<std::string, double>>{{"er(steps=20)", 0.1},
                                                                                   {"random(samples=30)", 0.1},
                                                                                   {"random_sign(steps=15)", 0.1},
                                                                                   {"top_t(steps=10)", 0.4},
                                                                                   {"gauntlet(effort=light)", 0.4}}) {
    const AttackTask task = test.task();
    const double expected = attacks().make(call)->expected_evaluations(task.explainer, *task.samples.schema);
    double spent = 0;
    for (const SampleOutcome& sample : test.run(call).samples) spent += static_cast<double>(sample.evaluations) / 40;
    EXPECT_NEAR(spent / expected, 1, tolerance) << call << ": " << expected << " expected, " << spent << " spent";
  }
}

// The share of its work that an attack takes itself to have done when it is done.
double share_at_the_end(AttackCase& test, const std::string& call) {
  const AttackTask task = test.task();
  const auto attack = attacks().make(call);
  const TileWork work(/*progress=*/nullptr, 40, 40 * attack->expected_evaluations(task.explainer, *task.samples.schema));
  attack->run(task);
  return work.done() / (work.done() + TileWork::left_here());
}

TEST(Gauntlet, KnowsAtTheEndThatItIsAtTheEnd) {
  for (const double epsilon : {0.05, 1.0}) {
    for (const char* explainer : {"saliency", "input_x_gradient"}) {
      AttackCase test = table_case(epsilon);
      test.explainer = explainer;
      EXPECT_GT(share_at_the_end(test, "gauntlet(effort=light)"), 0.7) << explainer << " at " << epsilon;
    }
  }
}

TEST(Gauntlet, FindsTheMinimumOfASmallNetworkAndLeavesItThere) {
  AttackCase test = table_case(0.3);
  const AttackResult exact = test.run("exact"), found = test.run("gauntlet(effort=light)");
  std::int64_t proven = 0, evaluations = 0;
  for (std::size_t i = 0; i < found.samples.size(); ++i) {
    EXPECT_EQ(found.samples[i].value, exact.samples[i].value);
    proven += found.samples[i].proven == found.samples[i].value ? 1 : 0;
    if (found.samples[i].proven == found.samples[i].value) evaluations = std::max(evaluations, found.samples[i].evaluations);
  }
  EXPECT_GE(proven, 36) << "of 40";
  EXPECT_LT(evaluations, 1000) << "walks would take ten times that";
}

std::set<std::string> component_names(const AttackResult& result) {
  std::set<std::string> ran;
  for (const ComponentCost& component : result.components) ran.insert(component.name);
  return ran;
}

AttackCase large_image_case() {
  AttackCase test;
  test.schema = Schema::of(Layout::grid(1, 20, 20));
  test.model = make_model(testing_support::for_images(*mlp_model({.features = 400, .classes = 3})->network()));
  test.inputs = normal_tensor({4, 1, 20, 20}, 52);
  test.ids = at::arange(4, at::kLong);
  test.metric = "top_k(k=30)";
  test.threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {0.1}}, test.schema);
  return test;
}

// Exactly these, whatever else there is: a component that fits no longer, or fits too often, is seen here.
TEST(Gauntlet, RunsTheComponentsThatFit) {
  using Names = std::set<std::string>;
  AttackCase table = table_case(0.3);
  EXPECT_TRUE(component_names(table.run("gauntlet(effort=light)")).contains("cells"));
  table.explainer = "input_x_gradient";
  EXPECT_EQ(component_names(table.run("gauntlet(effort=light)")),
            (Names{"random", "contrast", "gaps", "threshold", "crossing", "evolution"}));
  table.metric = "kendall";
  EXPECT_EQ(component_names(table.run("gauntlet(effort=light)")),
            (Names{"random", "contrast", "gaps", "order", "crossing", "evolution"}));
  AttackCase image = large_image_case();
  EXPECT_EQ(component_names(image.run("gauntlet(effort=light)")), (Names{"random", "contrast", "threshold", "square"}));
  image.explainer = "occlusion(window=10,stride=10)";
  EXPECT_EQ(component_names(image.run("gauntlet(effort=light)")), (Names{"random", "square"}));
  table.explainer = "occlusion";
  EXPECT_EQ(component_names(table.run("gauntlet(effort=light)")), (Names{"random", "drift"}));
}

// Of every attack that keeps the worst point, where some find less by themselves. With `cosine` values are all different.
TEST(Start, MoreEpsilonNeverFindsLess) {
  std::int64_t all_less_alone = 0;
  for (const char* attack : {"er(k=4)", "random(samples=10)", "random_sign(steps=10)", "gauntlet(effort=light)"}) {
    AttackCase small = table_case(0.30), large = table_case(0.31);
    small.metric = large.metric = "cosine";
    large.seed = small.seed + 1;  // other random points
    const AttackResult first = small.run(attack);
    AttackTask task = large.task();
    task.start = first.perturbed;
    const AttackResult second = attacks().make(attack)->run(task), alone = large.run(attack);
    std::int64_t from_start = 0, less_alone = 0;
    for (std::size_t i = 0; i < first.samples.size(); ++i) {
      EXPECT_LE(second.samples[i].value, first.samples[i].value + 1e-9) << attack;
      from_start += second.samples[i].component == "start";
      less_alone += alone.samples[i].value > first.samples[i].value + 1e-9;
      EXPECT_TRUE(alone.samples[i].component != "start");
    }
    EXPECT_GE(from_start, less_alone) << attack;
    all_less_alone += less_alone;
  }
  EXPECT_GT(all_less_alone, 0) << "the case should show a difference";
}

TEST(Start, TheLastIterateIsNoStart) {
  AttackCase test = table_case(0.3);
  test.select = Select::kLast;
  AttackTask task = test.task();
  task.start = table_case(0.2).run("gauntlet(effort=light)").perturbed;
  const AttackResult started = attacks().make("er(steps=5)")->run(task);
  EXPECT_TRUE(at::equal(started.perturbed, test.run("er(steps=5)").perturbed));
}

std::int64_t all_evaluations(const AttackResult& result) {
  std::int64_t sum = 0;
  for (const SampleOutcome& sample : result.samples) sum += sample.evaluations;
  return sum;
}

// A third, and four times: no component rounds its share up stage after stage.
TEST(Gauntlet, EffortIsProportionalToTheWork) {
  for (const char* metric : {"top_k(k=4)", "kendall"}) {
    AttackCase test = table_case();
    test.keep(0, 10);
    test.explainer = "input_x_gradient";
    test.metric = metric;
    const auto standard = static_cast<double>(all_evaluations(test.run("gauntlet")));
    const double light = static_cast<double>(all_evaluations(test.run("gauntlet(effort=light)"))) / standard;
    EXPECT_GT(light, 0.28) << metric;
    EXPECT_LT(light, 0.45) << metric;
  }
}

// The last stage is for samples for which the third one found something. With a metric of many values that is never all or none.
TEST(Gauntlet, SamplesThatAreDoneLeaveEarly) {
  AttackCase test = table_case();
  test.explainer = "input_x_gradient";
  std::set<std::int64_t> spent;
  for (const SampleOutcome& sample : test.run("gauntlet(effort=light)").samples) spent.insert(sample.evaluations / 100);
  EXPECT_GE(spent.size(), 2U);
}

TEST(Gauntlet, MoreEffortDoesNotFindLess) {
  AttackCase test = table_case();
  EXPECT_LE(mean_value(test.run("gauntlet")), mean_value(test.run("gauntlet(effort=light)")) + 0.005);
}

TEST(Gauntlet, WorksWithoutGradients) {
  AttackCase test = table_case();
  const Network network = *test.model->network();
  test.model = make_model([network](const at::Tensor& x) { return network.logits(x); },
                          Capabilities{.gradients = true, .double_backward = false}, at::kCPU);
  const AttackResult result = test.run("gauntlet(effort=light)");
  std::set<std::string> ran;
  for (const ComponentCost& component : result.components) ran.insert(component.name);
  EXPECT_EQ(ran, (std::set<std::string>{"drift", "random"}));
  EXPECT_LT(mean_value(result), 0.95);
}

// Layers that are not known cannot be smoothed: most gradients of the explanation are of no use, the searches must make up for
// it.
TEST(Gauntlet, IsNotWeakerThanRandomPointsOfTheSameCostOnAnOpaqueNetwork) {
  AttackCase test = table_case(0.6);
  const Network network = *test.model->network();
  test.model = make_model([network](const at::Tensor& x) { return network.logits(x); }, Capabilities{.layers = false}, at::kCPU);
  for (const char* explainer : {"saliency", "saliency(target=logit)"}) {
    test.explainer = explainer;
    const AttackResult result = test.run("gauntlet(effort=light)");
    std::int64_t most = 0;
    for (const SampleOutcome& sample : result.samples) most = std::max(most, sample.evaluations);
    EXPECT_GT(most, 5000);
    const double random = mean_value(test.run(fmt::format("random(samples={},from=sphere)", most)));
    EXPECT_LE(mean_value(result), random + 0.01) << explainer;  // up to chance
  }
}

// What it aims at is what falls: each metric is lower under its own attack than under that of another one.
TEST(Gauntlet, AimsAtTheMetricThatIsAskedFor) {
  AttackCase test;
  test.model = mlp_model({.features = 400, .classes = 3});
  test.schema = Schema::of(Layout::grid(1, 20, 20));
  test.model = make_model(testing_support::for_images(*test.model->network()));
  test.inputs = normal_tensor({6, 1, 20, 20}, 52);
  test.ids = at::arange(6, at::kLong);
  test.threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {0.3}}, test.schema);
  const auto attacked = [&](const std::string& metric) {
    test.metric = metric;
    return test.run("gauntlet(effort=light)");
  };
  const auto value = [&](const std::string& metric, const AttackResult& result) {
    const auto compared = metrics().make(metric);
    double sum = 0;
    for (std::int64_t i = 0; i < 6; ++i) {
      const auto map = [&](const at::Tensor& maps) {
        const at::Tensor row = maps[i].to(at::kDouble).contiguous();
        return fold(test.schema.layout, std::span<const double>(row.data_ptr<double>(), 400));
      };
      sum += compared->compare({map(result.original.maps), test.schema}, {map(result.moved.maps), test.schema});
    }
    return sum / 6;
  };
  const AttackResult precision = attacked("lens_precision(k=30,w=1)"), order = attacked("spearman");
  EXPECT_LT(value("lens_precision(k=30,w=1)", precision), value("lens_precision(k=30,w=1)", order));
  EXPECT_LT(value("spearman", order), value("spearman", precision));
}

// Almost all of the ball is out of tolerance: walks that ignored it would find nothing.
TEST(Gauntlet, FindsItsWayInsideATolerance) {
  AttackCase test;
  test.model = mlp_model({.features = 40, .hidden = 32});
  test.schema = Schema::of(Layout::vector(40));
  test.inputs = normal_tensor({12, 40}, 53);
  test.ids = at::arange(12, at::kLong);
  test.metric = "top_k(k=8)";
  test.threat = ThreatModel::make({.epsilons = {1}, .tolerance = 0.02}, test.schema);
  const AttackResult strong = test.run("gauntlet(effort=light)");
  EXPECT_LE(mean_value(strong), mean_value(test.run("random(samples=1000)")) - 0.1);
  EXPECT_LE(mean_value(strong), mean_value(test.run("er(preset=tabular)")) - 0.1);
}

TEST(Gauntlet, SmoothNetsNeedNoSurrogate) {
  AttackCase test = table_case();
  test.model = mlp_model({.features = 12, .activation = softplus(1)});
  EXPECT_LE(mean_value(test.run("gauntlet(effort=light)")), mean_value(test.run("random(samples=300)")));
}

}  // namespace
}  // namespace holdfast::attack
