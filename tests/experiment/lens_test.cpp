// The LENS experiments' own arithmetic: settings, cells, verdicts, the survey.
#include <cmath>
#include <fstream>

#include "../../src/experiment/lens/cells.h"
#include "../../src/experiment/lens/verdicts.h"
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

TEST(LensCells, CountSharesBySeed) {
  const auto group = [](const std::vector<std::vector<double>>& seeds) {
    Group result;
    for (const auto& values : seeds) result.push_back({.values = {{"near", values}}, .levels = {}});
    return result;
  };
  const Value none = share_below(group({{0.9, 0.8, kUndefined, 0.5}}), "near", 0.5);  // one seed: over its samples
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.count, 3);
  EXPECT_NEAR(*none.high, 1 - std::pow(0.025, 1.0 / 3), 1e-9);  // Clopper and Pearson's bound for no success
  EXPECT_TRUE(std::isnan(share_below(group({{kUndefined}}), "near", 0.5).value));
  const Value some = share_below(group({{0.1, 0.9, 0.9, 0.9}, {0.1, 0.9, kUndefined, 0.2}}), "near", 0.5);  // 1/4 and 2/3
  EXPECT_NEAR(some.value, (0.25 + 2.0 / 3) / 2, 1e-12);
  EXPECT_EQ(some.count, 2);
  EXPECT_EQ(*some.low, 0);  // Student's goes on to both sides
  EXPECT_EQ(*some.high, 1);
}

TEST(LensCells, KeepIntervalsInsideWhatIsPossible) {
  Group low = two_seeds(), high = two_seeds();
  for (Group* group : {&low, &high}) {
    for (Measured& seed : *group) {
      seed.values["kendall"] = seed.values["plain"];
      seed.levels["kendall"] = {0, 0.1};
    }
  }
  high[1].values["plain"] = high[1].values["kendall"] = {1, 1, kUndefined};
  // Differences 0 and .6: .3 +- 12.706 * .3.
  const Value of_shares = difference_of(high, "plain", low, "plain", 0),
              of_ranks = difference_of(high, "kendall", low, "kendall", 0);
  EXPECT_NEAR(of_shares.value, 0.3, 1e-12);
  EXPECT_EQ(*of_shares.low, -1);
  EXPECT_EQ(*of_shares.high, 1);
  EXPECT_EQ(*of_ranks.low, -2);
  EXPECT_EQ(*of_ranks.high, 2);
  EXPECT_EQ(*value_of(high, "plain", 0).low, 0);
  EXPECT_EQ(*value_of(high, "kendall", 0).low, -1);
  EXPECT_EQ(*value_of(high, "plain", 0).high, 1);
  EXPECT_EQ(*share_difference({0.2, 0.9}, {0.1, 0.2}).low, -1);
}

TEST(LensCells, ComparesGainsOfTheSameSamples) {
  Group other = two_seeds();
  for (Measured& seed : other) seed.values["near"] = seed.values["plain"];  // no gain
  EXPECT_NEAR(gain_lead_of(two_seeds(), other, "near", "plain", 0).value, (0.4 + 0.2) / 2, 1e-12);
  EXPECT_NEAR(gain_lead_of(two_seeds(), two_seeds(), "near", "plain", 0).value, 0, 1e-12);
}

Value spread(double low, double high) {
  return {.value = (low + high) / 2, .low = low, .high = high};
}

TEST(LensVerdicts, OfAllCasesAboveALimit) {
  // The second has the higher mean and the lower end.
  const std::vector<Case> cases{{"first", spread(0.1, 0.2)}, {"second", spread(-0.2, 0.8)}, {"undefined", {}}};
  EXPECT_EQ(lowest_of(cases)->name, "second");
  EXPECT_EQ(lowest_of({{"undefined", {}}}), nullptr);
  const Verdict half = all_above(0, "L6", "all are more robust", "robust minus natural", cases, "", 3);
  EXPECT_EQ(half.verdict, "not decided");  // one of two
  EXPECT_EQ(half.number, 1);
  EXPECT_EQ(half.low, 0.5);
  EXPECT_EQ(
      half.why,
      "Number: share of the cases in which robust minus natural is above 0; 2 cases: 1 for it, 0 against it, 1 open. It reaches "
      "lowest in second, 0.300 [-0.200, 0.800]. Cases: first 0.150 [0.100, 0.200]; second 0.300 [-0.200, 0.800].");
  const Verdict only = all_above(0.9, "L2", "it stays", "what stays", {{"mnist", spread(0.1, 0.2)}}, "Also.", 3);
  EXPECT_EQ(only.verdict, "does not hold");
  EXPECT_EQ(only.high, 0.2);
  EXPECT_EQ(only.why, "Number: what stays, mnist; above 0.9 is for the claim. Also.");
  const auto judged = [](const std::vector<Value>& values, double limit) {
    std::vector<Case> all;
    for (const Value& value : values) all.push_back({"one", value});
    return all_above(limit, "L6", "", "", all, "Also.", 3).verdict;
  };
  EXPECT_EQ(judged({spread(2, 3), spread(1.9, 2), spread(1.7, 2)}, 1.8), "holds");
  EXPECT_EQ(judged({spread(1.7, 1.9), spread(1.6, 2)}, 1.8), "not decided");  // open ones are neither for it nor against it
  EXPECT_EQ(judged({spread(2, 3), spread(1, 1.5)}, 1.8), "holds in part");
  EXPECT_EQ(judged({spread(2, 3), spread(1, 1.5), spread(1, 1.2)}, 1.8), "does not hold");
  EXPECT_EQ(judged({{.value = 5}}, 1.8), "not decided");  // a number without an interval
  EXPECT_EQ(judged({}, 1.8), "not decided");
  EXPECT_EQ(outcome_above({{"one", spread(0.1, 0.2)}}, 0.3), "1 case: 0 for it, 1 against it, 0 open");
}

TEST(LensVerdicts, OfReadings) {
  EXPECT_EQ(agreed({"holds", "holds"}), "holds");
  EXPECT_EQ(agreed({"holds", "does not hold"}), "not decided");
  EXPECT_EQ(agreed({}), "not decided");
  EXPECT_EQ(make_verdict("L6", "", "holds", "A sentence. ", {}, 3).why, "A sentence.");
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
  EXPECT_EQ(result.verdicts[0].verdict, "not decided");    // three answers decide nothing
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
