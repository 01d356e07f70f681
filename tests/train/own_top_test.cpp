// own_top: what its closed forms promise, and what its training reaches.
#include <span>

#include <gtest/gtest.h>

#include "../../src/train/objectives/margin_effects.h"
#include "../../src/train/objectives/margin_writer.h"
#include "gated_table.h"
#include "holdfast/attack/attack.h"
#include "holdfast/model/model.h"
#include "support/errors.h"

namespace holdfast::train {
namespace {

// Gates of both categories and bends of two numbers, with weights that have nothing to do with the labels.
TableMargin any_margin() {
  RandomStream random(3, "any margin");
  const auto draw = [&](std::vector<std::int64_t> sizes) {
    at::Tensor values = at::empty(sizes, at::kDouble);
    for (std::int64_t i = 0; i < values.numel(); ++i) values.view(-1)[i] = random.normal();
    return values;
  };
  return {.weight = draw({8}),
          .bias = at::scalar_tensor(0.3, at::kDouble),
          .gates = {4, 6, 7},
          .gated = draw({3, 8}),
          .bends = {.columns = at::tensor({0, 0, 0, 2}, at::kLong),
                    .knots = at::tensor({-1.0, 0.1, 0.3, 0.4}, at::kDouble),
                    .sizes = at::tensor({1.0, 1.0, 1.0, 0.35}, at::kDouble)},
          .bent = 2 * draw({4})};
}

Network written(const TableMargin& margin, const Dataset& dataset) {
  const Network network = fitted(dataset, "linear").network;
  const at::NoGradGuard no_graph;
  const at::Tensor sizes = dataset.inputs.to(at::kDouble).abs().amax(0);
  MarginWriter writer(MarginLayers{network});
  writer.add_margin(margin, sizes, dataset.schema);
  return network;
}

Samples samples_of(const Dataset& dataset, const Model& model, const at::Tensor& rows) {
  return {.inputs = rows,
          .targets = predicted_class(model.logits(rows)),
          .ids = at::arange(rows.size(0), at::kLong),
          .schema = share_schema(dataset.schema)};
}

TEST(OwnTop, NetworkAndMapAreThoseOfTheFormula) {
  const Dataset dataset = gated_table();
  const TableMargin margin = any_margin();
  const auto model = make_model(written(margin, dataset));
  const at::Tensor rows = dataset.inputs_of(dataset.test), exact = rows.to(at::kDouble);
  const at::NoGradGuard no_graph;
  const at::Tensor logits = model->logits(rows).to(at::kDouble);
  EXPECT_LT((logits.select(1, 1) - logits.select(1, 0) - margin.of(exact)).abs().max().item<double>(), 1e-4);

  const Explanation found =
      explainers().make("valid_effect")->attribute({.model = *model, .samples = samples_of(dataset, *model, rows)});
  const at::Tensor maps = found.maps.to(at::kDouble) * found.log_scale.to(at::kDouble).exp().unsqueeze(1);
  const MarginEffects effects(dataset.schema, margin);
  EXPECT_LT((effects.of(margin, exact, 0).map - maps).abs().max().item<double>(), 1e-3);
  EXPECT_TRUE(at::equal(effects.columns().sum(1), at::tensor({1.0, 1.0, 1.0, 3.0, 2.0}, at::kDouble)));
}

TEST(OwnTop, BoundsHoldInTheBallAndAreReached) {
  const Dataset dataset = gated_table();
  const TableMargin margin = any_margin();
  const MarginEffects effects(dataset.schema, margin);
  const at::Tensor rows = dataset.inputs_of(dataset.test).to(at::kDouble).slice(0, 0, 60);
  constexpr double kRadius = 0.3;
  const MarginEffects::Found bounds = effects.of(margin, rows, kRadius);
  at::Tensor least = bounds.map.clone(), most = bounds.map.clone();
  RandomStream random(4, "points");
  for (int point = 0; point < 200; ++point) {
    at::Tensor direction = at::empty({rows.size(0), 3}, at::kDouble);
    for (double& one : std::span(direction.mutable_data_ptr<double>(), static_cast<std::size_t>(direction.numel())))
      one = random.normal();
    const double size = kRadius * (point % 2 == 0 ? 1 : random.uniform());
    at::Tensor moved = rows.clone();
    moved.slice(1, 0, 3) += size * direction / direction.norm(2, 1, /*keepdim=*/true);
    moved.slice(1, 0, 2).clamp_(-3, 3);
    moved.select(1, 2).clamp_(0, 1);
    const at::Tensor map = effects.of(margin, moved, 0).map;
    least = at::minimum(least, map);
    most = at::maximum(most, map);
  }
  EXPECT_GE((least - bounds.least).min().item<double>(), -1e-9);
  EXPECT_GE((bounds.most - most).min().item<double>(), -1e-9);
  EXPECT_GT((bounds.most - bounds.map).slice(1, 0, 1).max().item<double>(), 0.1) << "no bend within reach";
  // The map at a point is a mean over the move, so beside a bend the bound may be a little beyond.
  const at::Tensor close = (bounds.most - most) < 0.05 * bounds.most;
  EXPECT_GT(close.slice(1, 0, 3).to(at::kDouble).mean().item<double>(), 0.7);
  // No bend within reach, or none at all: the effect of a number does not change.
  EXPECT_TRUE(at::allclose(bounds.least.select(1, 1), bounds.map.select(1, 1)));
  EXPECT_TRUE(at::allclose(bounds.most.select(1, 1), bounds.map.select(1, 1)));
}

TEST(OwnTop, TopFeaturesHoldWhereTheBoundsSaySo) {
  const Dataset dataset = gated_table();
  const TableMargin margin = any_margin();
  const auto model = make_model(written(margin, dataset));
  const at::Tensor rows = dataset.inputs_of(dataset.test).slice(0, 0, 40);
  const ThreatModel threat = ThreatModel::make({.epsilons = {0.3}, .valid = true, .switches = 0}, dataset.schema);
  const at::NoGradGuard no_graph;
  const auto explainer = explainers().make("valid_effect");
  const auto metric = metrics().make("top_k(k=2)");
  const AttackResult result = attacks()
                                  .make("gauntlet(effort=light)")
                                  ->run({.model = *model,
                                         .explainer = *explainer,
                                         .metric = *metric,
                                         .threat = threat,
                                         .samples = samples_of(dataset, *model, rows)});
  const MarginEffects::Found bounds = MarginEffects(dataset.schema, margin).of(margin, rows.to(at::kDouble), 0.3);
  const at::Tensor order = bounds.map.argsort(1, true);
  const at::Tensor gap = bounds.least.gather(1, order.slice(1, 0, 2)).amin(1) - bounds.most.gather(1, order.slice(1, 2)).amax(1);
  int proven = 0, moved = 0;
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    const double value = result.samples[static_cast<std::size_t>(i)].value;
    if (gap[i].item<double>() > 1e-3) {
      ++proven;
      EXPECT_EQ(value, 1.0) << "row " << i;
    }
    moved += value < 1 ? 1 : 0;
  }
  EXPECT_GT(proven, 5);
  EXPECT_GT(moved, 5);
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
  const TrainResult gated = fitted(dataset, "gated_linear(gates=3)"), own = fitted(dataset, "own_top(gates=3,bends=0,steps=300)");
  const TopFeatures before = top_features(dataset, gated.network), after = top_features(dataset, own.network);
  EXPECT_GT(after.kept, 0.9);
  EXPECT_LT(after.between, before.between + 0.02);
  EXPECT_GT(own.test->auc.mean, gated.test->auc.mean - 0.03);
  // The hinge is what makes them hold, and the term `between` what makes them differ.
  const TopFeatures alike = top_features(dataset, fitted(dataset, "own_top(gates=3,bends=0,steps=300,between=0,own=0)").network);
  EXPECT_LT(after.between, alike.between);
  const TopFeatures loose = top_features(dataset, fitted(dataset, "own_top(gates=3,bends=0,steps=300,margin=0)").network);
  EXPECT_LT(loose.kept, after.kept);
}

// Three numbers; the first pulls to one class at both ends of its range.
Dataset bent_table() {
  Dataset dataset = gated_table();
  dataset.inputs = dataset.inputs.slice(1, 0, 3).clone();
  Schema schema = Schema::of(Layout::vector(3));
  schema.features.assign(dataset.schema.features.begin(), dataset.schema.features.begin() + 3);
  schema.classes = dataset.schema.classes;
  schema.describe_table();
  dataset.schema = schema;
  for (std::int64_t i = 0; i < dataset.inputs.size(0); ++i) {
    RandomStream random(11, "bent table", static_cast<std::uint64_t>(i));
    const double margin = 3 * std::abs(dataset.inputs[i][0].item<double>()) - 2.4 + dataset.inputs[i][1].item<double>();
    dataset.labels[i] = random.uniform() < 1 / (1 + std::exp(-margin)) ? 1 : 0;
  }
  return dataset;
}

TEST(OwnTop, BendsServeTablesWithoutCategories) {
  const Dataset dataset = bent_table();
  const TrainResult linear = fitted(dataset, "linear"), own = fitted(dataset, "own_top(bends=8,steps=200)");
  EXPECT_GT(own.test->auc.mean, linear.test->auc.mean + 0.1);
  // A knot is found where the slope turns round.
  const Bends bends = fit_table_margin(dataset, 0, 1, 0).margin.bends;
  EXPECT_EQ(bends.columns[0].item<std::int64_t>(), 0);
  EXPECT_NEAR(bends.knots[0].item<double>(), 0, 0.3);
}

TEST(OwnTop, TheSameSeedGivesTheSameNetwork) {
  const Dataset dataset = gated_table(200);
  const auto network = [&](std::uint64_t seed) {
    TrainOptions options = quick(1);
    options.architecture = "mlp(hidden=12)";
    options.recipe = "own_top(gates=2,steps=20)";
    options.seed = seed;
    return train_network(dataset, options).network;
  };
  const Network first = network(0);
  EXPECT_TRUE(same_weights(first, network(0)));
  EXPECT_FALSE(same_weights(first, network(1)));
}

TEST(OwnTop, RefusesWhatItCannotBuildOn) {
  EXPECT_ERROR(fitted(two_clouds(), "own_top"), kUsage, "the schema has no features");
  Dataset dataset = gated_table(50);
  EXPECT_ERROR(fitted(dataset, "own_top", "mlp(hidden=4)"), kUsage, "5 gates need 6 hidden units, and the network has 4");
  EXPECT_ERROR(fitted(dataset, "own_top(gates=0)", "linear"), kUsage, "a hidden layer of at least 2 units");
  EXPECT_ERROR(fitted(dataset, "own_top(gates=0,bends=0)"), kUsage, "there is no gate and no bend");
  dataset.schema.features[1].deviation.reset();
  EXPECT_ERROR(fitted(dataset, "own_top"), kUsage, "no deviation of 'b'; add \"deviation\"");
  Dataset still = bent_table();
  for (Feature& feature : still.schema.features) feature.deviation = 0;
  EXPECT_ERROR(fitted(still, "own_top"), kUsage, "no categories and no number that varies");
}

}  // namespace
}  // namespace holdfast::train
