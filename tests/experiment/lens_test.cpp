// The LENS experiments' own arithmetic: settings, cells, verdicts, the survey.
#include <cmath>
#include <fstream>

#include "../../src/experiment/lens/claims.h"
#include "holdfast/core/torch.h"
#include "holdfast/train/objective.h"
#include "support/errors.h"
#include "support/small_models.h"
#include "support/temp_folder.h"

namespace holdfast::experiment::paper::lens {
namespace {

constexpr Judgement kHolds = Judgement::kHolds, kInPart = Judgement::kHoldsInPart, kFails = Judgement::kDoesNotHold,
                    kNotDecided = Judgement::kNotDecided;

ExperimentContext context_in(const TempFolder& folder, Scale scale) {
  return {scale, 0, 1, at::kCPU, {.run = folder.path(), .models = folder / "models", .cells = folder / "cells"}};
}

const Setting& setting(Scale scale, const std::string& name) {
  return *std::ranges::find(paper_named("lens", scale).settings, name, &Setting::name);
}

std::string recipe_of(Scale scale, const std::string& training) {
  return recipe_call(paper_named("lens", scale).method(training), setting(scale, "mnist"));
}

TEST(LensSettings, TrainAsManyStepsAsTheyPromise) {
  for (const char* name : {"mnist", "fashion_mnist"}) {
    const Setting &narrow = setting(Scale::kCpu, name), &paper = setting(Scale::kFull, name);
    EXPECT_EQ(narrow.training_steps, 4000);
    EXPECT_EQ(narrow.training_steps % (narrow.training_samples / narrow.batch_size), 0);  // whole epochs
    EXPECT_EQ(narrow.architecture, "cnn_chen(width=16x32x256)");
    EXPECT_EQ(narrow.path_steps, 20);
    EXPECT_EQ(narrow.samples, 100);
    EXPECT_EQ(paper.training_steps, 100000);
    EXPECT_EQ(paper.architecture, "cnn_chen");
  }
  EXPECT_EQ(setting(Scale::kFull, "flower").training_steps, 70000);
  EXPECT_EQ(setting(Scale::kFull, "gtsrb").training_steps, 70000);
  EXPECT_EQ(setting(Scale::kFull, "flower").k, 1000);
  EXPECT_EQ(setting(Scale::kCpu, "flower").k, 62);  // the same share of a sixteenth of the pixels
}

TEST(LensSettings, CountGradientEvaluations) {
  EXPECT_EQ(gradient_evaluations("vanilla"), 1);
  EXPECT_EQ(gradient_evaluations("pgd(steps=7)"), 8);
  EXPECT_EQ(gradient_evaluations(recipe_of(Scale::kCpu, "ig_sum_norm")), 3 * 7 * 5 + 3 * 10);
  EXPECT_EQ(gradient_evaluations(recipe_of(Scale::kCpu, "steady_map")), 3 * 7 + 1 + 6);
  EXPECT_EQ(gradient_evaluations("steady_map(steps=7,explanation=both,path_steps=4)"), 3 * 7 * 4 + 4 + 6 * 4);
  EXPECT_EQ(gradient_evaluations("steady_map(steps=7,weight=0)"), 7 + 6);  // no maps in the inner maximisation
  for (const Scale scale : {Scale::kQuick, Scale::kCpu, Scale::kFull}) {
    // pgd_long has at least as many evaluations as ours.
    EXPECT_GE(gradient_evaluations(recipe_of(scale, "pgd_long")), gradient_evaluations(recipe_of(scale, "steady_map")));
    for (const char* training : {"natural", "pgd", "pgd_long", "ig_norm", "ig_sum_norm", "steady_map"})
      EXPECT_NO_THROW(recipes().make(recipe_of(scale, training))) << training;
  }
}

// Shorter inner maximisations go as far as 2.5 epsilon; a variant of steady_map goes as far as the whole.
TEST(LensSettings, StepsGoAsFarWhateverTheirNumber) {
  for (const Scale scale : {Scale::kCpu, Scale::kFull}) {
    const Plan plan = read_plan(carried_file("lens/ablation.toml"), "lens/ablation.toml", scale);
    const auto options = [&](const Method& method) { return objectives().options(recipe_call(method, plan.settings.front())); };
    const auto shipped = std::ranges::find(plan.methods, "steady_map", &Method::name);
    const double distance = options(*shipped).real("step_size") * static_cast<double>(options(*shipped).integer("steps"));
    for (const Method& method : plan.methods) {
      if (!method.name.starts_with("steady_map")) continue;
      const Options changed = options(method);
      EXPECT_NEAR(changed.real("step_size") * static_cast<double>(changed.integer("steps")), distance, 1e-12) << method.name;
    }
  }
  const Options cpu = objectives().options(recipe_of(Scale::kCpu, "pgd"));
  EXPECT_NEAR(cpu.real("step_size") * static_cast<double>(cpu.integer("steps")), 2.5 * 0.3, 1e-12);
}

// A linear network whose map is the same everywhere: nothing moves, and every map is like every other.
struct LinearCase {
  LinearCase() {
    Dataset& dataset = data->data;
    data->key = "linear case";
    dataset.name = "linear";
    dataset.inputs = testing_support::normal_tensor({12, 1, 4, 4}, 1).mul_(0.1).add_(0.5).clamp_(0, 1);
    dataset.schema = Schema::of(Layout::grid(1, 4, 4));
    dataset.schema.classes = {"a", "b"};
    for (std::int64_t i = 0; i < 12; ++i) dataset.test.push_back(i);
    Network network = architectures().make("linear(inputs=1x4x4,classes=2)")->build(3);
    const at::Tensor weight = network.parameters()[0].tensor;
    weight[1].copy_(-weight[0]);  // both classes have one map
    dataset.labels = predicted_class(network.logits(dataset.inputs));
    dataset.labels[4] = 1 - dataset.labels[4].item<std::int64_t>();  // misclassified
    dataset.labels[7] = 1 - dataset.labels[7].item<std::int64_t>();
    subject.key = "linear";
    subject.model = make_model(std::move(network), dataset.schema.layout);
    subject.data = data;
    subject.explainer = "saliency(target=logit)";
    subject.rows = first_rows(dataset, "test", 12);
    subject.explains_labels = true;
  }
  std::shared_ptr<ExperimentData> data = std::make_shared<ExperimentData>();
  StudiedNetwork subject;
};

TEST(LensCells, LeaveMisclassifiedSamplesOutAndKeepTheirPlace) {
  const TempFolder folder;
  ExperimentContext context = context_in(folder, Scale::kQuick);
  const LinearCase linear;
  CellBatch batch(0);
  batch.attack(linear.subject, {.attack = "random_sign(steps=3)",
                                .aim = "kendall",
                                .metrics = {"top_k(k=4)", "lens_precision(k=4,w=1)"},
                                .norm = Norm::kLinf,
                                .epsilon = 0.01,
                                .box = std::pair(0.0, 1.0)});
  batch.run(context, "test");
  const AttackedCell& cell = batch.attacked(0);
  EXPECT_EQ(cell.left_out, 2);
  const MetricNumbers& numbers = cell.of("top_k(k=4)");
  ASSERT_EQ(numbers.values.size(), 12u);
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    if (i == 4 || i == 7) {
      EXPECT_TRUE(std::isnan(numbers.values[i])) << i;
    } else {
      EXPECT_EQ(numbers.values[i], 1) << i;
      EXPECT_NEAR(numbers.chance[i], 0.25, 1e-12);
    }
  }
  EXPECT_EQ(numbers.between, 1);  // the same map for all
  const Numbers all = numbers_of({cell}, "top_k(k=4)");
  const Value value = value_of(all, 0);
  EXPECT_EQ(value.value, 1);
  EXPECT_EQ(value.count, 10);
  EXPECT_FALSE(value.specific);  // undefined where every map is alike
  EXPECT_EQ(specific_or_zero(all).means()[0], 0);
  EXPECT_EQ(plain_value(adjusted(all), 0).value, 1);
}

TEST(PaperRows, TheFirstOfEachClassInTheOrderOfTheDataset) {
  Dataset dataset;
  dataset.schema.classes = {"a", "b", "c"};
  dataset.labels = at::tensor({0, 1, 1, 0, 2, 1, 0, 0, 2, 2}, at::kLong);
  for (std::int64_t row = 1; row < 10; ++row) dataset.test.push_back(row);  // row 0 is for training
  const SampleRows two = class_rows(dataset, 6);
  EXPECT_EQ(two.positions, (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8}));
  EXPECT_EQ(two.words, "first 2 of each class");
  EXPECT_EQ(class_rows(dataset, 100).positions, dataset.test);  // fewer than asked for
}

TEST(LensCells, TakeTheFirstSamplesThatAreClassifiedRightly) {
  const LinearCase linear;
  const SampleRows some = right_rows(*linear.subject.model, linear.data->data, 6),
                   all = right_rows(*linear.subject.model, linear.data->data, 100);
  EXPECT_EQ(some.positions, (std::vector<std::int64_t>{0, 1, 2, 3, 5, 6}));
  EXPECT_EQ(some.passed_over, 1);
  EXPECT_EQ(all.positions.size(), 10u);  // no more are there
  EXPECT_EQ(all.passed_over, 2);
}

// Two seeds of three samples, the last misclassified by the second.
struct TwoSeeds {
  Numbers plain{.values = {{0.2, 0.4, 0.6}, {0.3, 0.5, kUndefined}},
                .chance = {{0.1, 0.1, 0.1}, {0.1, 0.1, kUndefined}},
                .between = {0.2, 0.2}};
  Numbers near{.values = {{0.6, 0.8, 1.0}, {0.5, 0.7, kUndefined}},
               .chance = {{0.4, 0.5, 0.6}, {0.5, 0.5, kUndefined}},
               .between = {0.6, 0.6}};
};

TEST(PaperNumbers, TakeLevelsOutSampleBySample) {
  const TwoSeeds two;
  EXPECT_NEAR(difference(two.near, two.plain, 0).value, (0.4 + 0.2) / 2, 1e-12);
  // A sample's own chance level: (.6-.4)/.6, (.8-.5)/.5, 1; then 0 and .4.
  const double near_first = (0.2 / 0.6 + 0.3 / 0.5 + 1) / 3, near_second = 0.4 / 2, plain = 0.3 / 0.9;
  const Value gain = difference(adjusted(two.near), adjusted(two.plain), 0);
  EXPECT_NEAR(gain.value, (near_first - plain + near_second - plain) / 2, 1e-12);
  EXPECT_NEAR(*gain.high - gain.value, 12.706 * std::abs(near_first - near_second) / 2, 1e-9);  // Student, one degree of freedom
  EXPECT_NEAR(difference(specific(two.near), specific(two.plain), 0).value, (0.2 / 0.4 - 0.2 / 0.8 + 0 - 0.2 / 0.8) / 2, 1e-12);
  EXPECT_NEAR(*value_of(two.near, 0).specific, (0.2 / 0.4 + 0) / 2, 1e-12);  // the mean over samples, then over networks
  const Value found = ratio(two.near, two.plain);
  EXPECT_NEAR(found.value, (0.8 / 0.4 + 0.6 / 0.4) / 2, 1e-12);
  EXPECT_EQ(found.count, 2);
}

TEST(PaperNumbers, AverageASamplesCellsBeforeTheInterval) {
  // Cells that are copies of each other: the interval is that of one cell, however many copies there are.
  const std::vector<double> cell{0.0, 0.3, 0.4, 1.0, kUndefined};
  const Value one = mean_of_samples({cell}, 7), many = mean_of_samples({cell, cell, cell, cell}, 7);
  EXPECT_NEAR(one.value, 0.425, 1e-12);
  EXPECT_EQ(many.count, 4);
  EXPECT_NEAR(*many.low, *one.low, 1e-12);
  EXPECT_NEAR(*many.high, *one.high, 1e-12);
  EXPECT_NEAR(mean_of_samples({{0.0, 1.0}, {1.0, 2.0}}, 7).value, 1, 1e-12);
}

TEST(PaperNumbers, CountSharesBySeed) {
  const auto share = [](const BySeed& values) { return share_below({.values = values}, 0.5); };
  const Value none = share({{0.9, 0.8, kUndefined, 0.5}});  // one seed: over its samples
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.count, 3);
  EXPECT_NEAR(*none.high, 1 - std::pow(0.025, 1.0 / 3), 1e-9);  // Clopper and Pearson's bound for no success
  EXPECT_TRUE(std::isnan(share({{kUndefined}}).value));
  const Value some = share({{0.1, 0.9, 0.9, 0.9}, {0.1, 0.9, kUndefined, 0.2}});  // 1/4 and 2/3
  EXPECT_NEAR(some.value, (0.25 + 2.0 / 3) / 2, 1e-12);
  EXPECT_EQ(some.count, 2);
  EXPECT_EQ(*some.low, 0);  // Student's goes on to both sides
  EXPECT_EQ(*some.high, 1);
}

TEST(PaperNumbers, KeepIntervalsInsideWhatIsPossible) {
  TwoSeeds low, high;
  high.plain.values[1] = {1, 1, kUndefined};
  // Differences 0 and .6: .3 +- 12.706 * .3.
  const Value of_shares = bounded_difference(high.plain, low.plain, 0);
  EXPECT_NEAR(of_shares.value, 0.3, 1e-12);
  EXPECT_EQ(*of_shares.low, -1);
  EXPECT_EQ(*of_shares.high, 1);
  EXPECT_EQ(*value_of(high.plain, 0).low, 0);
  EXPECT_EQ(*value_of(high.plain, 0).high, 1);
  high.plain.least = low.plain.least = -1;  // a rank correlation
  EXPECT_EQ(*bounded_difference(high.plain, low.plain, 0).low, -2);
  EXPECT_EQ(*value_of(high.plain, 0).low, -1);
  EXPECT_EQ(*share_difference({0.2, 0.9}, {0.1, 0.2}).low, -1);
}

TEST(PaperNumbers, TakeTheLowestOfSeveralAttacks) {
  const Numbers one{.values = {{0.2, 0.9, kUndefined}}}, other{.values = {{0.5, 0.1, kUndefined}}};
  const std::vector<double> found = lowest({one, other}).values[0];
  EXPECT_EQ(found[0], 0.2);
  EXPECT_EQ(found[1], 0.1);
  EXPECT_TRUE(std::isnan(found[2]));
}

Value spread(double low, double high) {
  return {.value = (low + high) / 2, .low = low, .high = high};
}

TEST(PaperNumbers, SubtractIndependentNumbers) {
  const Value difference =
      independent_difference({.value = 0.5, .low = 0.2, .high = 0.6}, {.value = 0.1, .low = 0.05, .high = 0.5});
  EXPECT_NEAR(difference.value, 0.4, 1e-12);
  EXPECT_NEAR(*difference.low, 0.4 - 0.5, 1e-12);  // sides .3 and .4
  EXPECT_NEAR(*difference.high, 0.4 + std::hypot(0.1, 0.05), 1e-12);
  EXPECT_FALSE(independent_difference({.value = 1}, spread(0, 1)).low);
}

TEST(LensClaims, ASmallShareIsDecidedWhereBothReadingsAgree) {
  const auto judged = [](const std::vector<Value>& halves, const std::vector<Value>& most) {
    SharesBelow first{0.5, {}}, second{0.9, {}};
    for (const Value& value : halves) first.datasets.push_back({"mnist", value});
    for (const Value& value : most) second.datasets.push_back({"mnist", value});
    return judge_small_share({first, second}, 0.2);
  };
  const Value small = spread(0, 0.1), large = spread(0.5, 0.7), open = spread(0.1, 0.3);
  EXPECT_EQ(judged({small}, {small}).judgement, kHolds);
  EXPECT_EQ(judged({large}, {large}).judgement, kFails);
  EXPECT_EQ(judged({small, large}, {small, large}).judgement, kInPart);
  EXPECT_EQ(judged({small}, {large}).judgement, kNotDecided);
  EXPECT_EQ(judged({open}, {open}).judgement, kNotDecided);
  EXPECT_EQ(judged({}, {}).words.at("highest"), "none");
}

TEST(LensClaims, TheOrderIsDecidedByThePapersNetworksAlone) {
  const Value above = spread(0.1, 0.2), below = spread(-0.2, -0.1), open = spread(-0.1, 0.1);
  EXPECT_EQ(judge_order({above, above}, true).judgement, kHolds);
  EXPECT_EQ(judge_order({above, above, below}, true).judgement, kInPart);
  EXPECT_EQ(judge_order({below, below}, true).judgement, kFails);
  EXPECT_EQ(judge_order({open, open}, true).judgement, kNotDecided);
  EXPECT_EQ(judge_order({above, above}, false).judgement, kNotDecided);
}

TEST(LensClaims, OnePairIsEnoughAgainstAProposition) {
  EXPECT_EQ(judge_contraction(0.99, 10), kHolds);
  EXPECT_EQ(judge_contraction(1.01, 10), kFails);
  EXPECT_EQ(judge_contraction(0, 0), kNotDecided);
}

TEST(LensClaims, OursHoldsWholeOnlyWithinItsConditions) {
  const Condition met{{"between level", spread(0, 0.02)}, 0.05, false}, open{{"accuracy", spread(-0.02, 0)}, -0.01, true},
      missed{{"accuracy", spread(-0.3, -0.2)}, -0.01, true};
  EXPECT_EQ(with_conditions(kHolds, {met}), kHolds);
  EXPECT_EQ(with_conditions(kHolds, {met, open}), kNotDecided);
  EXPECT_EQ(with_conditions(kHolds, {met, missed}), kInPart);
  EXPECT_EQ(with_conditions(kFails, {met}), kFails);
  EXPECT_EQ(with_conditions(kNotDecided, {missed}), kFails);
  EXPECT_EQ(with_conditions(kNotDecided, {met, open}), kNotDecided);
  EXPECT_EQ(with_conditions(kInPart, {open}), kInPart);
  EXPECT_EQ(
      in_words({met, missed}),
      "Not surely within the limits: accuracy: -0.250 [-0.300, -0.200], must be above -0.01, missed. Surely within the limits: "
      "between level: 0.010 [0.000, 0.020], must be below 0.05. ");
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
  EXPECT_EQ(result.verdicts[0].judgement, kNotDecided);    // three answers decide nothing
  EXPECT_EQ(experiments().make("lens/table1")->run(context).verdicts[0].judgement, kNotDecided);
  const auto judged = [&](int with_lens, int with_top_k) {
    std::ofstream file(folder / "many.json");
    for (int i = 0; i < with_lens + with_top_k; ++i)
      file << (i == 0 ? "[" : ",") << R"json({"top_k": 0.2, "lens": 0.9, "similar": )json" << (i < with_lens ? "true" : "false")
           << "}";
    file << "]";
    file.close();
    return experiments().make("lens/table1(answers=" + folder / "many.json" + ")")->run(context).verdicts[0].judgement;
  };
  EXPECT_EQ(judged(40, 5), kHolds);
  EXPECT_EQ(judged(5, 40), kFails);
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
}  // namespace holdfast::experiment::paper::lens
