// valid_effect: closed forms on small tables, and what fools a gradient and gains nothing here.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "explain_case.h"
#include "holdfast/model/linear_chain.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::explain {
namespace {

using testing_support::apart;
using testing_support::linear_model;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::true_maps;

// age has a step, hours has none; sex and race are categories: 7 columns, 4 features.
Schema table_schema() {
  Schema schema = Schema::of(Layout::vector(7));
  schema.features = {{.name = "age", .low = 0, .high = 1, .step = 0.125, .deviation = 0.3},
                     {.name = "sex=F", .step = 1},
                     {.name = "sex=M", .step = 1},
                     {.name = "hours", .low = -2, .high = 2, .deviation = 0.7},
                     {.name = "race=A", .step = 1},
                     {.name = "race=B", .step = 1},
                     {.name = "race=C", .step = 1}};
  schema.groups = {{.name = "sex", .columns = {1, 2}, .levels = {"F", "M"}},
                   {.name = "race", .columns = {4, 5, 6}, .levels = {"A", "B", "C"}}};
  return schema;
}

// Valid rows; ages on the grid, those of the first two at the ends of the range.
at::Tensor table_rows(std::int64_t count, at::ScalarType type = at::kDouble) {
  at::Tensor rows = at::zeros({count, 7}, at::kDouble);
  const at::Tensor hours = normal_tensor({count}, 77, at::kDouble).clamp_(-1.5, 1.5);
  for (std::int64_t b = 0; b < count; ++b) {
    rows[b][0] = b == 0 ? 0 : b == 1 ? 1 : 0.125 * static_cast<double>(1 + b % 7);
    rows[b][1 + b % 2] = 1;
    rows[b][3] = hours[b];
    rows[b][4 + (b / 2) % 3] = 1;
  }
  return rows.to(type);
}

ExplainTask table_task(const Model& model, const at::Tensor& rows, const Schema& schema = table_schema()) {
  ExplainTask task = testing_support::whole_task(model, rows);
  task.samples.schema = share_schema(schema);
  return task;
}

at::Tensor effects(const Model& model, const at::Tensor& rows, const std::string& call = "valid_effect") {
  return true_maps(explainers().make(call)->attribute(table_task(model, rows)));
}

// The definition, row by row and move by move.
at::Tensor plain_effects(const Model& model, const at::Tensor& rows, const std::function<double(const at::Tensor&)>& quantity) {
  const Schema schema = table_schema();
  const std::vector<TableFeature> features = schema.table_features();
  at::Tensor maps = at::zeros({rows.size(0), 4}, at::kDouble);
  const auto f = [&](const at::Tensor& row, std::int64_t target) {
    const at::Tensor logits = model.logits(row.unsqueeze(0))[0].to(at::kDouble);
    return quantity(target == 0 ? logits : logits.flip(0));
  };
  const at::Tensor targets = predicted_class(model.logits(rows));
  for (std::int64_t b = 0; b < rows.size(0); ++b) {
    const std::int64_t target = targets[b].item<std::int64_t>();
    for (std::size_t i = 0; i < features.size(); ++i) {
      std::vector<double> changes;
      double per = 1;
      if (features[i].is_category) {
        for (const std::int64_t level : features[i].columns) {
          if (rows[b][level].item<double>() == 1) continue;
          at::Tensor moved = rows[b].clone();
          for (const std::int64_t column : features[i].columns) moved[column] = column == level ? 1 : 0;
          changes.push_back(std::abs(f(moved, target) - f(rows[b], target)));
        }
      } else {
        const Feature& known = schema.features[static_cast<std::size_t>(features[i].columns[0])];
        const double move = known.step > 0 ? known.step : 0.1 * *known.deviation;
        per = *known.deviation / move;
        for (const double way : {-1.0, 1.0}) {
          at::Tensor moved = rows[b].clone();
          moved[features[i].columns[0]] += way * move;
          const double value = moved[features[i].columns[0]].item<double>();
          if (value < known.low - 1e-9 || value > known.high + 1e-9) continue;
          changes.push_back(std::abs(f(moved, target) - f(rows[b], target)));
        }
      }
      double sum = 0;
      for (const double change : changes) sum += change;
      maps[b][static_cast<std::int64_t>(i)] = per * sum / static_cast<double>(changes.size());
    }
  }
  return maps;
}

TEST(ValidEffect, IsItsDefinitionMoveByMove) {
  const auto model = make_model(mlp_network({.features = 7, .type = at::kDouble}));
  const at::Tensor rows = table_rows(12);
  const auto margin = [](const at::Tensor& z) { return (z[0] - z[1]).item<double>(); };
  EXPECT_LE(apart(effects(*model, rows), plain_effects(*model, rows, margin)), 1e-12);
  const auto probability = [&](const at::Tensor& z) { return 1 / (1 + std::exp(-margin(z))); };
  EXPECT_LE(apart(effects(*model, rows, "valid_effect(target=probability)"), plain_effects(*model, rows, probability)), 1e-12);
  const auto ce = [&](const at::Tensor& z) { return std::log1p(std::exp(-margin(z))); };
  EXPECT_LE(apart(effects(*model, rows, "valid_effect(target=ce)"), plain_effects(*model, rows, ce)), 1e-12);
}

TEST(ValidEffect, OfALinearModelIsTheSameForEveryRowButForItsLevel) {
  const at::Tensor weight =
      at::stack({at::zeros({7}, at::kDouble), at::tensor({2.0, 1.0, -1.0, -0.5, 0.5, 1.5, 4.5}, at::kDouble)});
  const auto model = linear_model(weight, at::tensor({0.0, 0.1}, at::kDouble));
  const at::Tensor maps = effects(*model, table_rows(12));
  for (std::int64_t b = 0; b < 12; ++b) {
    const std::vector<double> race{(1.0 + 4.0) / 2, (1.0 + 3.0) / 2, (4.0 + 3.0) / 2};
    const std::vector<double> expected{2 * 0.3, 2, 0.5 * 0.7, race[static_cast<std::size_t>((b / 2) % 3)]};
    for (std::int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(maps[b][i].item<double>(), expected[static_cast<std::size_t>(i)], 1e-12) << b << ", " << i;
  }
}

// Logits of `one` plus, for the second class, what `more` says of a row: zero on every valid row.
std::unique_ptr<Model> with_more(const Network& one, const std::function<at::Tensor(const at::Tensor&)>& more) {
  return make_model(
      [one, more](const at::Tensor& x) {
        const at::Tensor logits = one.logits(x), added = more(x);
        return at::stack({logits.select(1, 0), logits.select(1, 1) + added}, 1);
      },
      Capabilities{}, at::kCPU);
}

// Pairs of units that are zero where a group is one-hot and change the gradient there as much as one likes.
at::Tensor gauge_pairs(const at::Tensor& x) {
  constexpr double kGate = 50;
  const at::Tensor gate = kGate * (x.select(1, 4) - 0.5), rest = 7 * x.select(1, 5) - 9 * x.select(1, 6);
  return at::relu(gate + rest) - at::relu(gate);
}

// Distance of age from the next whole number of steps: zero on the grid.
at::Tensor triangle_wave(const at::Tensor& x) {
  const at::Tensor steps = x.select(1, 0) / 0.125;
  return 30 * (steps - steps.detach().round()).abs();
}

at::Tensor tiny_sawtooth(const at::Tensor& x) {
  const at::Tensor phase = 1e9 * x.select(1, 3);
  return 1e-9 * (phase - phase.detach().floor());
}

TEST(ValidEffect, WhatIsZeroOnValidRowsDoesNotChangeIt) {
  const Network network = mlp_network({.features = 7, .type = at::kDouble});
  const auto plain = make_model(network);
  const at::Tensor rows = table_rows(20);
  struct Trick {
    const char* name;
    at::Tensor (*function)(const at::Tensor&);
    double tolerance;
  };
  for (const Trick& trick :
       {Trick{"gauge", gauge_pairs, 1e-12}, Trick{"triangle", triangle_wave, 1e-12}, Trick{"sawtooth", tiny_sawtooth, 1e-7}}) {
    const auto fooled = with_more(network, trick.function);
    EXPECT_LE((fooled->logits(rows) - plain->logits(rows)).abs().max().item<double>(), 2e-9) << trick.name;
    EXPECT_LE(apart(effects(*fooled, rows), effects(*plain, rows)), trick.tolerance) << trick.name;
    // A gradient is fooled: the test would show nothing otherwise.
    const auto saliency = [&](const Model& model) {
      return true_maps(explainers().make("saliency(target=logit)")->attribute(table_task(model, rows + 1e-7)));
    };
    EXPECT_GT(apart(saliency(*fooled), saliency(*plain)), 0.3) << trick.name;
  }
}

TEST(ValidEffect, PullbackIsTheDerivativeInTheNumbers) {
  const auto model = make_model(mlp_network({.features = 7, .activation = testing_support::softplus(2), .type = at::kDouble}));
  const at::Tensor rows = table_rows(8);
  for (const char* call : {"valid_effect", "valid_effect(target=probability)"}) {
    const auto explainer = explainers().make(call);
    const auto here = explainer->linearize(table_task(*model, rows));
    const at::Tensor cotangent = normal_tensor({8, 4}, 5, at::kDouble);
    const at::Tensor pulled = here->pullback(cotangent);
    EXPECT_EQ(pulled.sizes(), rows.sizes());
    const at::Tensor targets = table_task(*model, rows).samples.targets;
    for (const std::int64_t column : {0, 3}) {
      const auto value = [&](double step) {
        at::Tensor moved = rows.clone();
        moved.select(1, column) += step;
        ExplainTask task = table_task(*model, moved);
        task.samples.targets = targets;
        const Explanation there = explainer->attribute(task);
        return (cotangent * there.maps).sum(1) * (there.log_scale - here->at().log_scale).exp();
      };
      const at::Tensor slope = (value(1e-6) - value(-1e-6)) / 2e-6;
      // The first two ages stand at the ends of the range, where one of the moves comes and goes.
      EXPECT_LE((slope - pulled.select(1, column)).slice(0, column == 0 ? 2 : 0).abs().max().item<double>(), 1e-6) << call;
    }
  }
}

// Networks of one hidden layer have loops of their own; a last node that multiplies by 1 sends them the tensors' way.
TEST(ValidEffect, OneHiddenLayerIsAsAutogradHasIt) {
  if (!model::LinearChain::of(mlp_network({.features = 7}), {}, table_rows(1, at::kFloat))) GTEST_SKIP() << "no AVX2";
  const op::Activation leaky{.kind = op::Activation::Kind::kLeakyRelu, .parameter = 0.1};
  const std::vector<op::Activation> activations{{}, leaky, testing_support::softplus(1), testing_support::softplus(30)};
  for (const std::int64_t hidden : {1, 16, 21}) {  // less than a register, a whole one, more
    for (const op::Activation& activation : activations) {
      for (const bool prepared : {false, true}) {
        Network network;
        const Network plain = mlp_network({.features = 7, .hidden = hidden, .activation = activation});
        for (const Node& node : plain.nodes()) {
          network.add(node.name, node.operation);
          if (prepared && node.name == "input")
            network.add("scale", op::Affine{normal_tensor({7}, 20).abs_().add_(0.5), normal_tensor({7}, 21)});
        }
        Network slow = network;
        slow.add("same", op::Multiply{});
        const auto fast_model = make_model(std::move(network)), slow_model = make_model(std::move(slow));
        const at::Tensor rows = table_rows(40, at::kFloat), cotangent = normal_tensor({40, 4}, 5);
        for (const Rule& rule : {Rule{}, Rule::softplus(3)}) {
          for (const char* call : {"valid_effect", "valid_effect(target=probability)", "valid_effect(target=ce)"}) {
            const auto explainer = explainers().make(call);
            ExplainTask fast = table_task(*fast_model, rows), reference = table_task(*slow_model, rows);
            fast.rule = reference.rule = rule;
            reference.samples.targets = fast.samples.targets;
            EXPECT_LE(apart(true_maps(explainer->attribute(fast)), true_maps(explainer->attribute(reference))), 2e-5) << call;
            const auto here = explainer->linearize(fast), there = explainer->linearize(reference);
            EXPECT_LE(apart(true_maps(here->at()), true_maps(there->at())), 2e-5) << call;
            EXPECT_LE(apart(here->at().logits, there->at().logits), 1e-5);
            const at::Tensor pulled = here->pullback(cotangent), expected = there->pullback(cotangent);
            EXPECT_LE((pulled - expected).abs().max().item<double>(), 1e-4 * (1 + expected.abs().max().item<double>())) << call;
            EXPECT_TRUE(here->pullback(cotangent).equal(pulled));
          }
        }
      }
    }
  }
}

// Deeper chains of linear layers, and those of three classes, are run in blocks of rows.
TEST(ValidEffect, DeeperChainsAreAsAutogradHasThem) {
  if (!model::LinearChain::of(mlp_network({.features = 7}), {}, table_rows(1, at::kFloat))) GTEST_SKIP() << "no AVX2";
  for (const char* call : {"mlp(inputs=7,hidden=16x12x5,classes=2)", "mlp(inputs=7,hidden=21,classes=3)"}) {
    const Network network = architectures().make(call)->build(3);
    Network slow = network;
    slow.add("same", op::Multiply{});
    const at::Tensor rows = table_rows(40, at::kFloat);
    ASSERT_FALSE(model::LinearChain::of(slow, {}, rows)) << "the reference must go another way";
    const auto fast_model = make_model(network), slow_model = make_model(std::move(slow));
    for (const Rule& rule : {Rule{}, Rule::softplus(3)}) {
      for (const char* target : {"logit", "probability", "ce"}) {
        const auto explainer = explainers().make(fmt::format("valid_effect(target={})", target));
        ExplainTask fast = table_task(*fast_model, rows), reference = table_task(*slow_model, rows);
        fast.rule = reference.rule = rule;
        reference.samples.targets = fast.samples.targets;
        const Explanation here = explainer->attribute(fast), there = explainer->attribute(reference);
        EXPECT_LE(apart(true_maps(here), true_maps(there)), 1e-4) << call << " " << target;  // differences of close logits
        EXPECT_LE(apart(here.logits, there.logits), 1e-5) << call << " " << target;
        ExplainTask some = table_task(*fast_model, rows.slice(0, 0, 5));
        some.rule = rule;
        some.samples.targets = fast.samples.targets.slice(0, 0, 5);
        EXPECT_TRUE(explainer->attribute(some).maps.equal(here.maps.slice(0, 0, 5))) << call << " " << target;
      }
    }
  }
}

TEST(ValidEffect, BatchesAndMemoryDoNotMatterAndTheRuleCounts) {
  const auto model = make_model(mlp_network({.features = 7, .type = at::kDouble}));
  const at::Tensor rows = table_rows(12);
  const at::Tensor all = effects(*model, rows);
  for (std::int64_t b = 0; b < 12; ++b) EXPECT_LE(apart(effects(*model, rows.slice(0, b, b + 1))[0], all[b]), 1e-12);
  ExplainTask small = table_task(*model, rows);
  small.memory = 1;
  EXPECT_LE(apart(true_maps(explainers().make("valid_effect")->attribute(small)), all), 1e-12);
  ExplainTask smooth = table_task(*model, rows);
  smooth.rule = Rule::softplus(1.5);
  const auto surrogate =
      make_model(mlp_network({.features = 7, .activation = testing_support::softplus(1.5), .type = at::kDouble}));
  smooth.samples.targets = table_task(*surrogate, rows).samples.targets;
  EXPECT_LE(apart(true_maps(explainers().make("valid_effect")->attribute(smooth)), effects(*surrogate, rows)), 1e-12);
}

TEST(ValidEffect, CountsItsPassesAndNamesItsFeatures) {
  const auto explainer = explainers().make("valid_effect");
  const auto schema = share_schema(table_schema());
  EXPECT_EQ(explainer->evaluations(*schema), 1 + 2 * 2 + 1 + 2);
  const Schema& of_maps = explainer->map_schema(*schema);
  ASSERT_EQ(of_maps.layout, Layout::vector(4));
  EXPECT_EQ(of_maps.feature_name(0), "age");
  EXPECT_EQ(of_maps.feature_name(1), "sex");
  EXPECT_EQ(of_maps.feature_name(2), "hours");
  EXPECT_EQ(of_maps.feature_name(3), "race");
  EXPECT_EQ(explainer->usual_top(*schema), 2);
  EXPECT_EQ(explainer->usual_top(Schema::of(Layout::vector(30))), 10);
}

TEST(ValidEffect, SpreadsOverColumnsForWhatCountsThose) {
  const auto schema = share_schema(table_schema());
  const at::Tensor maps = at::tensor({1.0, 2.0, 3.0, 6.0}, at::kDouble).unsqueeze(0);
  EXPECT_TRUE(
      at::equal(maps_of_elements(maps, *schema), at::tensor({1.0, 1.0, 1.0, 3.0, 2.0, 2.0, 2.0}, at::kDouble).unsqueeze(0)));
}

TEST(ValidEffect, SaysWhatASchemaLacks) {
  const auto model = make_model(mlp_network({.features = 7, .type = at::kDouble}));
  const auto explainer = explainers().make("valid_effect");
  ExplainTask task = testing_support::whole_task(*model, table_rows(2));
  EXPECT_ERROR(explainer->check_task(task), kUsage, "the table has no schema");
  task.samples.schema = share_schema(Schema::of(Layout::vector(7)));
  EXPECT_ERROR(explainer->check_task(task), kUsage, "the schema has no features; list them with low, high and deviation");
  Schema schema = table_schema();
  schema.features[3].deviation.reset();
  task.samples.schema = share_schema(schema);
  EXPECT_ERROR(explainer->check_task(task), kUsage, "feature 'hours' has no deviation in the schema; add \"deviation\"");
  task.samples.schema = share_schema(Schema::of(Layout::grid(1, 7, 1)));
  EXPECT_ERROR(explainer->check_task(task), kUsage, "it is for tables");
}

// A number that never changed in training has no effect, whatever the model makes of it.
TEST(ValidEffect, AFeatureWithoutDeviationHasNoEffect) {
  const auto model = make_model(mlp_network({.features = 7, .type = at::kDouble}));
  Schema schema = table_schema();
  schema.features[0].deviation = 0;
  const at::Tensor maps = true_maps(explainers().make("valid_effect")->attribute(table_task(*model, table_rows(3), schema)));
  EXPECT_EQ(maps.select(1, 0).abs().max().item<double>(), 0);
  EXPECT_GT(maps.select(1, 1).min().item<double>(), 0);
}

}  // namespace
}  // namespace holdfast::explain
