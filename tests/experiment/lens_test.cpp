// The LENS experiments' own arithmetic: settings, cells, verdicts, the survey.
#include <cmath>
#include <fstream>

#include "../../src/experiment/lens/cells.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "support/errors.h"
#include "support/small_models.h"
#include "support/temp_folder.h"

namespace holdfast::lens {
namespace {

ExperimentContext context_in(const TempFolder& folder, Scale scale) {
  return {scale, 0, 1, at::kCPU, {.run = folder.path(), .models = folder / "models", .cells = folder / "cells"}};
}

TEST(LensSettings, TrainAsManyStepsAsTheyPromise) {
  const TempFolder folder;
  const ExperimentContext cpu = context_in(folder, Scale::kCpu), full = context_in(folder, Scale::kFull);
  for (const char* name : {"mnist", "fashion_mnist"}) {
    const Setting narrow = setting(cpu, name), paper = setting(full, name);
    EXPECT_EQ(narrow.steps, 4000);
    EXPECT_EQ(narrow.steps % (narrow.training_images / narrow.batch_size), 0);  // whole epochs
    EXPECT_EQ(narrow.architecture, "cnn_chen(width=16x32x256)");
    EXPECT_EQ(narrow.path_steps, 20);
    EXPECT_EQ(narrow.images, 100);
    EXPECT_EQ(paper.steps, 100000);
    EXPECT_EQ(paper.architecture, "cnn_chen");
  }
  EXPECT_EQ(setting(full, "flower").steps, 70000);
  EXPECT_EQ(setting(full, "gtsrb").steps, 70000);
  EXPECT_EQ(setting(full, "flower").k, 1000);
  EXPECT_EQ(setting(cpu, "flower").k, 62);  // the same share of a sixteenth of the pixels
}

TEST(LensSettings, CountGradientEvaluations) {
  const TempFolder folder;
  const ExperimentContext cpu = context_in(folder, Scale::kCpu);
  const Setting mnist = setting(cpu, "mnist");
  EXPECT_EQ(evaluations_of("vanilla"), 1);
  EXPECT_EQ(evaluations_of("pgd(steps=7)"), 8);
  EXPECT_EQ(evaluations_of(recipe_of(cpu, mnist, "ig_sum_norm")), 3 * 7 * 5 + 3 * 10);
  EXPECT_EQ(evaluations_of(recipe_of(cpu, mnist, "steady_map")), 3 * 7 + 1 + 6);
  EXPECT_EQ(evaluations_of("steady_map(steps=7,explanation=both,path_steps=4)"), 3 * 7 * 4 + 4 + 6 * 4);
  EXPECT_GE(evaluations_of(recipe_of(cpu, mnist, "pgd_long")), evaluations_of(recipe_of(cpu, mnist, "steady_map")));
  for (const char* training : {"natural", "pgd", "pgd_long", "ig_norm", "ig_sum_norm", "steady_map"})
    EXPECT_NO_THROW(recipes().make(recipe_of(cpu, mnist, training))) << training;
}

TEST(LensSettings, ChangeOneOptionOfARecipe) {
  const TempFolder folder;
  const ExperimentContext cpu = context_in(folder, Scale::kCpu);
  const Setting mnist = setting(cpu, "mnist");
  const auto options = [&](const std::string& training) { return objectives().options(recipe_of(cpu, mnist, training)); };
  const Options shipped = options("steady_map"), lighter = options("steady_map(weight=2)"),
                longer = options("steady_map(steps=14)");
  EXPECT_EQ(shipped.real("weight"), 6);
  EXPECT_EQ(lighter.real("weight"), 2);
  for (const char* same : {"apart", "power", "epsilon", "step_size", "warmup"})
    EXPECT_EQ(lighter.real(same), shipped.real(same)) << same;
  EXPECT_EQ(options("steady_map(weight=6)").canonical(), shipped.canonical());  // the same networks
  // As far in twice the steps, unless a step's length is given.
  EXPECT_EQ(longer.integer("steps"), 14);
  EXPECT_DOUBLE_EQ(longer.real("step_size") * 14, shipped.real("step_size") * 7);
  EXPECT_EQ(options("steady_map(steps=14,step_size=0.01)").real("step_size"), 0.01);
  EXPECT_EQ(evaluations_of(recipe_of(cpu, mnist, "steady_map(steps=14)")), 3 * 14 + 1 + 6);
  EXPECT_EQ(evaluations_of(recipe_of(cpu, mnist, "steady_map(weight=0)")), 7 + 6);  // no maps in the inner maximisation
  EXPECT_ERROR(recipes().make(recipe_of(cpu, mnist, "steady_map(wieght=2)")), kUsage, "wieght");
}

// A linear network whose map is the same everywhere: nothing moves, and every map is like every other.
struct LinearCase {
  LinearCase() {
    data.key = "linear case";
    data.data.name = "linear";
    data.data.inputs = testing_support::normal_tensor({12, 1, 4, 4}, 1).mul_(0.1).add_(0.5).clamp_(0, 1);
    data.data.schema = Schema::of(Layout::grid(1, 4, 4));
    data.data.schema.classes = {"a", "b"};
    for (std::int64_t i = 0; i < 12; ++i) data.data.test.push_back(i);
    Network network = architectures().make("linear(inputs=1x4x4,classes=2)")->build(3);
    const at::Tensor weight = network.parameters()[0].tensor;
    weight[1].copy_(-weight[0]);  // both classes have one map
    data.data.labels = predicted_class(network.logits(data.data.inputs));
    data.data.labels[4] = 1 - data.data.labels[4].item<std::int64_t>();  // misclassified
    data.data.labels[7] = 1 - data.data.labels[7].item<std::int64_t>();
    subject.training = "natural";
    TrainedModel trained;
    trained.key = "linear";
    trained.model = make_model(std::move(network), data.data.schema.layout);
    subject.seeds.push_back(std::move(trained));
  }
  ExperimentData data;
  Subject subject;
};

TEST(LensCells, LeaveMisclassifiedSamplesOutAndKeepTheirPlace) {
  const TempFolder folder;
  ExperimentContext context = context_in(folder, Scale::kQuick);
  const LinearCase linear;
  Plan plan;
  EXPECT_EQ(plan.add(linear.subject, linear.data,
                     {.rows = linear.data.data.test,
                      .explainer = "saliency(target=logit)",
                      .attack = "random_sign(steps=3)",
                      .epsilon = 0.01,
                      .measures = {"top_k(k=4)", "lens_precision(k=4,w=1)"}}),
            0u);
  const std::vector<Group> groups = plan.run(context, "test");
  ASSERT_EQ(groups.size(), 1u);
  const Measured& measured = groups[0].at(0);
  EXPECT_EQ(measured.excluded, 2);
  const std::vector<double>& values = measured.values.at("top_k(k=4)");
  ASSERT_EQ(values.size(), 12u);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 4 || i == 7) {
      EXPECT_TRUE(std::isnan(values[i])) << i;
    } else {
      EXPECT_EQ(values[i], 1) << i;
    }
  }
  EXPECT_EQ(measured.levels.at("top_k(k=4)").between, 1);  // the same map for all
  EXPECT_NEAR(measured.levels.at("top_k(k=4)").chance, 0.25, 1e-12);
  const Value value = value_of(groups[0], "top_k(k=4)", 0);
  EXPECT_EQ(value.value, 1);
  EXPECT_EQ(value.count, 10);
  EXPECT_FALSE(value.specific);  // undefined where every map is alike
  EXPECT_EQ(adjusted_of(groups[0], "top_k(k=4)", 0).value, 1);
  EXPECT_EQ(pooled(groups[0], "top_k(k=4)").size(), 10u);
}

TEST(LensVerdicts, FollowTheWholeInterval) {
  EXPECT_EQ(judged({.value = 0.5, .low = 0.45, .high = 0.55}, 0.4), "holds");
  EXPECT_EQ(judged({.value = 0.5, .low = 0.35, .high = 0.55}, 0.4), "holds in part");
  EXPECT_EQ(judged({.value = 0.3, .low = 0.25, .high = 0.35}, 0.4), "does not hold");
  EXPECT_EQ(judged({}, 0.4), "not decided");
  EXPECT_EQ(words({.value = 0.5, .low = 0.25, .high = 0.75}), "0.500 [0.250, 0.750]");
}

TEST(LensCells, TakeTheFirstSamplesThatAreClassifiedRightly) {
  const LinearCase linear;
  const Chosen some = right_rows(linear.subject, linear.data, 6), all = right_rows(linear.subject, linear.data, 100);
  EXPECT_EQ(some.rows, (std::vector<std::int64_t>{0, 1, 2, 3, 5, 6}));
  EXPECT_EQ(some.passed_over, 1);
  EXPECT_EQ(all.rows.size(), 10u);  // no more are there
  EXPECT_EQ(all.passed_over, 2);
}

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// Two seeds of three samples, the last misclassified by the second.
Group two_seeds() {
  return {{.values = {{"plain", {0.2, 0.4, 0.6}}, {"near", {0.6, 0.8, 1.0}}},
           .levels = {{"plain", {0.1, 0.2}}, {"near", {0.5, 0.6}}}},
          {.values = {{"plain", {0.3, 0.5, kUndefined}}, {"near", {0.5, 0.7, kUndefined}}},
           .levels = {{"plain", {0.1, 0.2}}, {"near", {0.5, 0.6}}},
           .excluded = 1}};
}

TEST(LensCells, TakeLevelsOutOfGains) {
  const Group group = two_seeds();
  EXPECT_NEAR(gain_of(group, "near", "plain", 0).value, (0.4 + 0.2) / 2, 1e-12);
  // Means .8 and .4, then .6 and .4: chance .5 and .1.
  const double first = 0.3 / 0.5 - 0.3 / 0.9, second = 0.1 / 0.5 - 0.3 / 0.9;
  const Value adjusted = adjusted_gain_of(group, "near", "plain", 0);
  EXPECT_NEAR(adjusted.value, (first + second) / 2, 1e-12);
  EXPECT_NEAR(*adjusted.high - adjusted.value, 12.706 * std::abs(first - second) / 2, 1e-9);  // Student, one degree of freedom
  EXPECT_NEAR(specific_gain_of(group, "near", "plain", 0).value, (0.2 / 0.4 - 0.2 / 0.8 + 0 - 0.2 / 0.8) / 2, 1e-12);
  const Value ratio = ratio_of(group, "near", "plain");
  EXPECT_NEAR(ratio.value, (0.8 / 0.4 + 0.6 / 0.4) / 2, 1e-12);
  EXPECT_EQ(ratio.count, 2);
  std::vector<Value> counts;
  add_counts(counts, group, 3);
  EXPECT_EQ(counts.at(0).value, 5);
  EXPECT_EQ(counts.at(1).value, 4);
}

TEST(LensCells, AverageASamplesCellsBeforeTheInterval) {
  // Cells that are copies of each other: the interval is that of one cell, however many copies there are.
  const std::vector<double> cell{0.0, 0.3, 0.4, 1.0, kUndefined};
  const Value one = mean_of_samples({cell}, 7), many = mean_of_samples({cell, cell, cell, cell}, 7);
  EXPECT_NEAR(one.value, 0.425, 1e-12);
  EXPECT_EQ(many.count, 4);
  EXPECT_NEAR(*many.low, *one.low, 1e-12);
  EXPECT_NEAR(*many.high, *one.high, 1e-12);
  EXPECT_NEAR(mean_of_samples({{0.0, 1.0}, {1.0, 2.0}}, 7).value, 1, 1e-12);
}

TEST(LensCells, CountSharesWithExactIntervals) {
  const Value none = share_below({0.9, 0.8, kUndefined, 0.5}, 0.5);
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.count, 3);
  EXPECT_NEAR(*none.high, 1 - std::pow(0.025, 1.0 / 3), 1e-9);  // Clopper and Pearson's bound for no success
  EXPECT_TRUE(std::isnan(share_below({kUndefined}, 0.5).value));
}

Value spread(double low, double high) {
  return {.value = (low + high) / 2, .low = low, .high = high};
}

TEST(LensVerdicts, OfSeveralNumbers) {
  EXPECT_EQ(judged_all({spread(2, 3), spread(1.9, 2)}, 1.8), "holds");
  EXPECT_EQ(judged_all({spread(2, 3), spread(1.7, 2)}, 1.8), "holds in part");
  EXPECT_EQ(judged_all({spread(2, 3), spread(1, 1.5)}, 1.8), "holds in part");
  EXPECT_EQ(judged_all({spread(1, 1.2), spread(1, 1.5), {}}, 1.8), "does not hold");
  EXPECT_EQ(judged_all({}, 1.8), "not decided");
  EXPECT_EQ(judged_everywhere(spread(0.1, 0.2), 0, 24, 24), "holds");
  EXPECT_EQ(judged_everywhere(spread(0.1, 0.2), 0, 23, 24), "holds in part");
  EXPECT_EQ(judged_everywhere(spread(-0.2, -0.1), 0, 3, 24), "does not hold");
  EXPECT_EQ(by_count(3, 3), "holds");
  EXPECT_EQ(by_count(1, 3), "holds in part");
  EXPECT_EQ(by_count(0, 3), "does not hold");
  EXPECT_EQ(by_count(0, 0), "not decided");
  EXPECT_EQ(all_on_one_side({spread(0, 0.1), spread(0.1, 0.19)}, 0.2), "holds");
  EXPECT_EQ(all_on_one_side({spread(0, 0.1), spread(0.5, 0.6)}, 0.2), "not decided");
  EXPECT_EQ(all_on_one_side({spread(0.3, 0.4), spread(0.5, 0.6)}, 0.2), "does not hold");
  EXPECT_EQ(all_on_one_side({}, 0.2), "not decided");
}

TEST(LensVerdicts, NameTheNumberThatReachesLowest) {
  // The second has the higher mean and the lower end.
  const std::vector<Named> differences{{"first", spread(0.1, 0.2)}, {"second", spread(-0.2, 0.8)}, {"undefined", {}}};
  EXPECT_EQ(lowest_of(differences)->name, "second");
  EXPECT_EQ(lowest_of({{"undefined", {}}}), nullptr);
  const Verdict some = all_above_zero("L6", "all are more robust", "robust minus natural", differences, "", 3);
  EXPECT_EQ(some.verdict, "holds in part");
  EXPECT_EQ(some.low, -0.2);
  EXPECT_NE(some.why.find("lowest: second. With the whole interval above 0 in 1 of 2, below 0 in 0."), std::string::npos)
      << some.why;
  EXPECT_EQ(all_above_zero("L6", "", "", {}, "", 3).verdict, "not decided");
  EXPECT_EQ(verdict("L6", "", "holds", "A sentence. ", {}, 3).why, "A sentence.");
}

TEST(LensVerdicts, SubtractIndependentNumbers) {
  const Value difference =
      independent_difference({.value = 0.5, .low = 0.2, .high = 0.6}, {.value = 0.1, .low = 0.05, .high = 0.5});
  EXPECT_NEAR(difference.value, 0.4, 1e-12);
  EXPECT_NEAR(*difference.low, 0.4 - 0.5, 1e-12);  // sides .3 and .4
  EXPECT_NEAR(*difference.high, 0.4 + std::hypot(0.1, 0.05), 1e-12);
  EXPECT_FALSE(independent_difference({.value = 1}, spread(0, 1)).low);
}

TEST(LensSurvey, ScoresWhatPeopleSaid) {
  const TempFolder folder;
  std::ofstream(folder / "answers.json") << R"json([{"top_k": 0.2, "lens": 0.9, "similar": true},
      {"top_k": 0.2, "lens": 0.9, "similar": true}, {"top_k": 0.2, "lens": 0.8, "similar": false},
      {"top_k": 0.9, "lens": 0.95, "similar": true}])json";
  ExperimentContext context = context_in(folder, Scale::kQuick);
  const ExperimentResult result = experiments().make("lens/table1(answers=" + folder / "answers.json" + ")")->run(context);
  EXPECT_NEAR(result.tables[0].rows[0].values[0].value, 2.0 / 3, 1e-12);
  EXPECT_EQ(result.tables[0].rows[0].values[0].count, 3);  // both measures agree on the last pair
  EXPECT_EQ(result.verdicts[0].verdict, "holds in part");  // three answers decide nothing
  EXPECT_EQ(experiments().make("lens/table1")->run(context).verdicts[0].verdict, "not decided");
  std::ofstream(folder / "bad.json") << R"json([{"top_k": 0.2}])json";
  EXPECT_ERROR(experiments().make("lens/table1(answers=" + folder / "bad.json" + ")")->run(context), kInput,
               "answer 1 must have");
}

TEST(LensExperiments, AreAllThere) {
  for (const char* name :
       {"fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "table1", "table2", "appendix", "beyond", "ablation"})
    EXPECT_TRUE(experiments().contains(std::string("lens/") + name)) << name;
  EXPECT_ERROR(experiments().make("lens/table2(natural=a.pt)"), kUsage, "natural=FILE and robust=FILE together");
}

}  // namespace
}  // namespace holdfast::lens
