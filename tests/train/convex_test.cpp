// Rows that every contest has: logistic regression, with gates, and with what is zero on valid rows.
#include <gtest/gtest.h>

#include "holdfast/attack/attack.h"
#include "holdfast/model/model.h"
#include "support/errors.h"
#include "toy.h"

namespace holdfast::train {
namespace {

// Three numbers, the last of five values, and two categories; the second category turns the effect of the first number round.
Dataset gated_table(std::int64_t samples = 600) {
  Dataset dataset;
  dataset.name = "gated_table";
  dataset.schema = Schema::of(Layout::vector(8));
  dataset.schema.features = {{.name = "a", .low = -3, .high = 3, .deviation = 1.0},
                             {.name = "b", .low = -3, .high = 3, .deviation = 1.0},
                             {.name = "c", .low = 0, .high = 1, .step = 0.25, .deviation = 0.35}};
  for (int i = 3; i < 8; ++i) dataset.schema.features.push_back({.name = fmt::format("level {}", i), .step = 1});
  dataset.schema.groups = {{.name = "x", .columns = {3, 4, 5}, .levels = {}}, {.name = "y", .columns = {6, 7}, .levels = {}}};
  dataset.schema.classes = {"no", "yes"};
  dataset.schema.describe_table();
  dataset.inputs = at::zeros({samples, 8});
  dataset.labels = at::zeros({samples}, at::kLong);
  for (std::int64_t i = 0; i < samples; ++i) {
    RandomStream random(9, "gated table", static_cast<std::uint64_t>(i));
    const double a = std::clamp(random.normal(), -3.0, 3.0), b = std::clamp(random.normal(), -3.0, 3.0);
    const auto c = static_cast<double>(random.below(5)) / 4;
    const auto x = static_cast<std::int64_t>(random.below(3)), y = static_cast<std::int64_t>(random.below(2));
    const double margin = (y == 0 ? 2 : -2) * a + b - c + (x == 1 ? 0.5 : 0);
    dataset.inputs[i][0] = a;
    dataset.inputs[i][1] = b;
    dataset.inputs[i][2] = c;
    dataset.inputs[i][3 + x] = 1;
    dataset.inputs[i][6 + y] = 1;
    dataset.labels[i] = random.uniform() < 1 / (1 + std::exp(-margin)) ? 1 : 0;
    (i % 5 == 3 ? dataset.validation : (i % 5 == 4 ? dataset.test : dataset.train)).push_back(i);
  }
  return dataset;
}

TrainResult fitted(const Dataset& dataset, const std::string& recipe, const std::string& architecture = "mlp(hidden=32)") {
  TrainOptions options = quick(1);
  options.architecture = architecture;
  options.recipe = recipe;
  return train_network(dataset, options);
}

at::Tensor margins(const Network& network, const at::Tensor& rows) {
  const at::NoGradGuard no_graph;
  const at::Tensor logits = network.logits(rows).to(at::kDouble);
  return logits.select(1, 1) - logits.select(1, 0);
}

TEST(Convex, LogisticRegressionIsAtItsOptimum) {
  const Dataset dataset = gated_table();
  const Network network = fitted(dataset, "linear(ridge=0.01)", "linear").network;
  const auto& layer = std::get<op::Linear>(network.nodes().back().operation);
  const at::Tensor rows = dataset.inputs_of(dataset.train).to(at::kDouble),
                   labels = dataset.labels_of(dataset.train).to(at::kDouble);
  const at::Tensor residual = at::sigmoid(margins(network, dataset.inputs_of(dataset.train))) - labels;
  const at::Tensor gradient =
      at::mv(rows.t(), residual) / rows.size(0) + 0.01 * (layer.weight[1] - layer.weight[0]).to(at::kDouble);
  EXPECT_LT(gradient.abs().max().item<double>(), 1e-5);
  EXPECT_LT(std::abs(residual.mean().item<double>()), 1e-5);
  // The same margin, whether it is written into one layer or into a hidden unit.
  const Network wide = fitted(dataset, "linear(ridge=0.01)").network;
  EXPECT_LT((margins(wide, dataset.inputs) - margins(network, dataset.inputs)).abs().max().item<double>(), 1e-5);
}

TEST(Convex, GatesFindTheInteraction) {
  const Dataset dataset = gated_table();
  const TrainResult linear = fitted(dataset, "linear"), gated = fitted(dataset, "gated_linear(gates=3)");
  EXPECT_GT(gated.test->auc.mean, linear.test->auc.mean + 0.1);
  EXPECT_GT(gated.test->auc.mean, 0.85);
  EXPECT_EQ(gated.history.size(), 1U);
  // The effect of the first number has the other sign behind the gate, and is nowhere between.
  at::Tensor rows = dataset.inputs_of(dataset.test).clone();
  const auto slope = [&](std::int64_t level) {
    at::Tensor there = rows.clone();
    there.slice(1, 6, 8).zero_();
    there.select(1, level).fill_(1);
    at::Tensor moved = there.clone();
    moved.select(1, 0) += 0.1;
    return (margins(gated.network, moved) - margins(gated.network, there)) / 0.1;
  };
  EXPECT_GT(slope(6).min().item<double>(), 1);
  EXPECT_LT(slope(7).max().item<double>(), -1);
}

// Valid rows within the ball of a sample, of both models: the gauge must show nowhere.
TEST(Convex, AGaugeChangesTheGradientAndNothingElse) {
  const Dataset dataset = gated_table();
  const Network plain = fitted(dataset, "linear").network;
  const at::Tensor rows = dataset.inputs_of(dataset.test);
  for (const char* recipe : {"gauged_linear", "gauged_linear(gauge=steps)"}) {
    const Network gauged = fitted(dataset, recipe).network;
    EXPECT_LT((margins(gauged, dataset.inputs) - margins(plain, dataset.inputs)).abs().max().item<double>(), 2e-4) << recipe;
    const auto maps = [&](const Network& network, const std::string& call) {
      const auto model = make_model(network);
      const Samples samples{.inputs = rows,
                            .targets = predicted_class(model->logits(rows)),
                            .ids = at::arange(rows.size(0), at::kLong),
                            .schema = share_schema(dataset.schema)};
      const Explanation found = explainers().make(call)->attribute({.model = *model, .samples = samples});
      return found.maps * found.log_scale.exp().unsqueeze(1);
    };
    const auto apart = [&](const std::string& call) {
      const at::Tensor one = maps(plain, call), other = maps(gauged, call);
      return ((one - other).abs().max() / one.abs().max()).item<double>();
    };
    EXPECT_LT(apart("valid_effect"), 1e-3) << recipe;
    EXPECT_GT(apart("saliency(target=logit)"), 0.5) << recipe << ": a gauge that turns no gradient shows nothing";
  }
}

TEST(Convex, UnderValidEffectAGaugeScoresExactlyAsLinearDoes) {
  const Dataset dataset = gated_table();
  const auto explainer = explainers().make("valid_effect");
  const auto metric = metrics().make("top_k(k=2)");
  const at::Tensor rows = dataset.inputs_of(dataset.test).slice(0, 0, 40);
  const auto values = [&](const std::string& recipe, std::int64_t switches) {
    const auto model = make_model(fitted(dataset, recipe).network);
    const ThreatModel threat = ThreatModel::make({.epsilons = {0.3}, .valid = true, .switches = switches}, dataset.schema);
    const at::NoGradGuard no_graph;
    const AttackResult result = attacks()
                                    .make("gauntlet(effort=light)")
                                    ->run({.model = *model,
                                           .explainer = *explainer,
                                           .metric = *metric,
                                           .threat = threat,
                                           .samples = {.inputs = rows,
                                                       .targets = predicted_class(model->logits(rows)),
                                                       .ids = at::arange(rows.size(0), at::kLong),
                                                       .schema = share_schema(dataset.schema)}});
    std::vector<double> found;
    for (const SampleOutcome& sample : result.samples) found.push_back(sample.value);
    return found;
  };
  const std::vector<double> plain = values("linear", 1);
  EXPECT_EQ(values("gauged_linear", 1), plain);
  EXPECT_EQ(values("gauged_linear(gauge=steps)", 0), std::vector<double>(40, 1.0)) << "as any linear model without switches";
}

// The share of the two top features of valid_effect that other values of the numbers within .1 leave, and how much of them two
// rows share.
struct TopFeatures {
  double kept = 0, between = 0;
};

TopFeatures top_features(const Dataset& dataset, const Network& network) {
  const auto model = make_model(network);
  const auto explainer = explainers().make("valid_effect");
  const auto tops = [&](const at::Tensor& rows) {
    const Samples samples{.inputs = rows,
                          .targets = predicted_class(model->logits(rows)),
                          .ids = at::arange(rows.size(0), at::kLong),
                          .schema = share_schema(dataset.schema)};
    const at::Tensor maps = explainer->attribute({.model = *model, .samples = samples}).maps;
    return at::zeros_like(maps).scatter(1, std::get<1>(maps.topk(2, 1)), 1.0);
  };
  const at::NoGradGuard no_graph;
  const at::Tensor rows = dataset.inputs_of(dataset.test), own = tops(rows);
  TopFeatures found{.kept = 1, .between = (at::mm(own, own.t()).mean() / 2).item<double>()};
  at::Tensor least = at::ones({rows.size(0)}, own.options());
  for (int direction = 0; direction < 16; ++direction) {
    at::Tensor moved = rows.clone();
    moved.select(1, 0) += 0.0999 * std::cos(direction * 0.3927);
    moved.select(1, 1) += 0.0999 * std::sin(direction * 0.3927);
    least = at::minimum(least, (own * tops(moved)).sum(1) / 2);
  }
  found.kept = least.mean().item<double>();
  return found;
}

TEST(OwnTop, TopFeaturesHoldAndDifferBetweenRows) {
  const Dataset dataset = gated_table();
  const TrainResult gated = fitted(dataset, "gated_linear(gates=3)"), own = fitted(dataset, "own_top(gates=3,steps=300)");
  const TopFeatures before = top_features(dataset, gated.network), after = top_features(dataset, own.network);
  EXPECT_GT(after.kept, 0.9);
  EXPECT_LT(after.between, before.between + 0.02);
  EXPECT_GT(own.test->auc.mean, gated.test->auc.mean - 0.03);
  // The hinge is what makes them hold, and the term `between` what makes them differ.
  const TopFeatures alike = top_features(dataset, fitted(dataset, "own_top(gates=3,steps=300,between=0,own=0)").network);
  EXPECT_LT(after.between, alike.between);
  const TopFeatures loose = top_features(dataset, fitted(dataset, "own_top(gates=3,steps=300,margin=0)").network);
  EXPECT_LT(loose.kept, after.kept);
}

TEST(OwnTop, RefusesTablesWithoutCategories) {
  EXPECT_ERROR(fitted(two_clouds(), "own_top(gates=1)"), kUsage, "no one-hot groups, which its gates are made of");
  Dataset dataset = gated_table(50);
  dataset.schema.features[1].deviation.reset();
  EXPECT_ERROR(fitted(dataset, "own_top(gates=1)"), kUsage, "no deviation of 'b'");
}

TEST(Convex, RefusesWhatItCannotWrite) {
  const Dataset dataset = gated_table(50);
  EXPECT_ERROR(fitted(dataset, "gated_linear", "mlp(hidden=8)"), kUsage, "15 gates need 31 hidden units, and the network has 8");
  EXPECT_ERROR(fitted(dataset, "linear", "mlp(hidden=8x8)"), kUsage, "one hidden layer with relu");
  EXPECT_ERROR(fitted(two_clouds(), "gauged_linear"), kUsage, "no one-hot groups");
  EXPECT_ERROR(fitted(dataset, "gauged_linear(gauge=steps)", "mlp(hidden=4)"), kUsage, "no number of the table has a step");
}

}  // namespace
}  // namespace holdfast::train
