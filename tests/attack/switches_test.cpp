// --switches M: up to M categories take another level beside a ball for the numbers.
#include <gtest/gtest.h>

#include "../../src/attack/draw.h"
#include "attack_case.h"
#include "holdfast/attack/verify.h"
#include "support/errors.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::mean_value;
using testing_support::normal_tensor;

// Columns 0-2, 3-4 and 5-8 are groups; 9-11 are numbers with deviations, the last on a grid.
Schema switching_schema() {
  Schema schema = Schema::of(Layout::vector(12));
  for (int i = 0; i < 9; ++i) schema.features.push_back({.name = fmt::format("level {}", i), .step = 1});
  schema.features.push_back({.name = "a", .low = -3, .high = 3, .deviation = 0.5});
  schema.features.push_back({.name = "b", .low = -3, .high = 3, .deviation = 1.0});
  schema.features.push_back({.name = "c", .low = -3, .high = 3, .step = 0.25, .deviation = 0.8});
  schema.groups = {{.name = "x", .columns = {0, 1, 2}, .levels = {}},
                   {.name = "y", .columns = {3, 4}, .levels = {}},
                   {.name = "z", .columns = {5, 6, 7, 8}, .levels = {}}};
  return schema;
}

at::Tensor switching_rows(std::int64_t count) {
  at::Tensor rows = at::zeros({count, 12}, at::kFloat);
  rows.slice(1, 9).copy_(normal_tensor({count, 3}, 8).clamp(-2, 2));
  rows.select(1, 11).mul_(4).round_().div_(4);
  for (std::int64_t b = 0; b < count; ++b) {
    rows[b][b % 3] = 1;
    rows[b][3 + b % 2] = 1;
    rows[b][5 + b % 4] = 1;
  }
  return rows;
}

AttackCase switching_case(std::int64_t switches, bool valid = false, Norm norm = Norm::kL2,
                          const std::string& explainer = "saliency") {
  AttackCase test;
  test.schema = switching_schema();
  test.inputs = switching_rows(12);
  test.ids = at::arange(12, at::kLong);
  test.explainer = explainer;
  test.metric = explainer == "saliency" ? "top_k(k=4)" : "top_k(k=2)";
  test.threat = ThreatModel::make({.norm = norm, .epsilons = {0.3}, .valid = valid, .switches = switches}, test.schema);
  return test;
}

std::int64_t switched_groups(const at::Tensor& clean, const at::Tensor& moved) {
  std::int64_t count = 0;
  for (const Group& group : switching_schema().groups) {
    bool changed = false;
    double sum = 0;
    for (const std::int64_t column : group.columns) {
      const double value = moved[column].item<double>();
      EXPECT_TRUE(value == 0 || value == 1);
      sum += value;
      changed = changed || value != clean[column].item<double>();
    }
    EXPECT_EQ(sum, 1);
    count += changed;
  }
  return count;
}

// Every attack, by plain loops and by the verifier.
TEST(Switches, AttacksStayWithinThem) {
  for (const char* call : {"random(samples=60)", "er(steps=20)", "random_sign(steps=20)", "gauntlet(effort=light)"}) {
    for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
      for (const bool valid : {false, true}) {
        for (const std::int64_t switches : {0, 1, 2}) {
          const bool is_ensemble = std::string(call).starts_with("gauntlet");  // costs seconds however few the samples
          if (is_ensemble && (switches != 1 || norm == Norm::kL1 || valid != (norm == Norm::kLinf))) continue;
          AttackCase test = switching_case(switches, valid, norm);
          const AttackResult result = test.run(call);
          const Verification found = verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, call);
          EXPECT_LE(found.largest_distance, 0.3 * (1 + 1e-6));
          std::int64_t most = 0;
          for (std::int64_t b = 0; b < 12; ++b) most = std::max(most, switched_groups(test.inputs[b], result.perturbed[b]));
          EXPECT_LE(most, switches) << call;
          if (switches > 0 && (std::string(call).starts_with("random(") || std::string(call).starts_with("gauntlet"))) {
            EXPECT_GT(most, 0) << call << " should switch somewhere";
          }
          const at::Tensor moves = (result.perturbed - test.inputs).slice(1, 9).to(at::kDouble);
          const at::Tensor size = norm == Norm::kL2   ? moves.norm(2, 1)
                                  : norm == Norm::kL1 ? moves.abs().sum(1)
                                                      : moves.abs().amax(1);
          EXPECT_LE(size.max().item<double>(), 0.3 * (1 + 1e-6));
          if (valid) {
            EXPECT_LE(
                (result.perturbed.select(1, 11) * 4 - (result.perturbed.select(1, 11) * 4).round()).abs().max().item<double>(),
                1e-5);
          }
        }
      }
    }
  }
}

// All single switches of the clean row are tried.
TEST(Switches, GauntletIsNoBetterThanAnySingleSwitch) {
  AttackCase test = switching_case(1);
  const AttackResult found = test.run("gauntlet(effort=light)");
  const AttackTask task = test.task();
  const at::Tensor clean = task.explainer.attribute({.model = task.model, .samples = task.samples}).maps;
  const at::Tensor predicted = predicted_class(task.model.logits(task.samples.inputs));
  for (const Group& group : test.schema.groups) {
    for (const std::int64_t level : group.columns) {
      at::Tensor rows = test.inputs.clone();
      for (const std::int64_t column : group.columns) rows.select(1, column).fill_(column == level ? 1 : 0);
      const at::Tensor logits = test.model->logits(rows);
      const at::Tensor maps = task.explainer.attribute({.model = task.model, .samples = task.samples.moved_to(rows)}).maps;
      for (std::int64_t b = 0; b < 12; ++b) {
        const at::Tensor margin = (logits[b][predicted[b]] - logits[b][1 - predicted[b]]);
        if (margin.item<double>() < 1e-3) continue;
        const auto top = [](const at::Tensor& map) { return at::zeros_like(map).scatter(0, std::get<1>(map.topk(4)), 1.0); };
        const double kept = (top(maps[b]) * top(clean[b])).sum().item<double>() / 4;
        EXPECT_LE(found.samples[static_cast<std::size_t>(b)].value, kept + 1e-9) << "sample " << b << ", level " << level;
      }
    }
  }
}

TEST(Switches, EpsilonZeroStillSwitches) {
  AttackCase test = switching_case(1);
  test.threat = ThreatModel::make({.epsilons = {0.0}, .switches = 1}, test.schema);
  const AttackResult result = test.run("gauntlet(effort=light)");
  EXPECT_EQ((result.perturbed - test.inputs).slice(1, 9).abs().max().item<double>(), 0);
  EXPECT_LT(mean_value(result), 1);
}

TEST(Switches, FrozenLevelsStay) {
  AttackCase test = switching_case(3);
  for (const std::size_t column : {0, 1, 2}) test.schema.features[column].frozen = true;
  test.threat = ThreatModel::make({.epsilons = {0.3}, .switches = 3}, test.schema);
  const AttackResult result = test.run("gauntlet(effort=light)");
  EXPECT_TRUE(at::equal(result.perturbed.slice(1, 0, 3), test.inputs.slice(1, 0, 3)));
}

TEST(Switches, TheVerifierCountsThem) {
  AttackCase test = switching_case(1);
  at::Tensor moved = test.inputs.clone();
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 1}, {3, 4}}) {
    moved[0][from] = 0;
    moved[0][to] = 1;
  }
  EXPECT_ERROR(verify(*test.model, test.threat, test.inputs, moved, test.ids, "ours"), kBug,
               "has 2 categories at another level, 1 may switch");
  moved = test.inputs.clone();
  moved[0][0] = 0.9;
  EXPECT_ERROR(verify(*test.model, test.threat, test.inputs, moved, test.ids, "ours"), kBug, "is no valid row");
}

TEST(Switches, RefusesWhatMakesNoSense) {
  const Schema schema = switching_schema();
  EXPECT_ERROR(ThreatModel::make({.switches = 4}, schema), kUsage,
               "switches=4: the table has only 3 groups of categories; choose switches <= 3");
  EXPECT_ERROR(ThreatModel::make({.switches = 0}, Schema::of(Layout::vector(3))), kUsage,
               "switches=0: the schema has no categories; list the one-hot columns of each");
  AttackCase test = switching_case(0, false, Norm::kL2, "valid_effect");
  test.threat = ThreatModel::make({.epsilons = {0.3}}, schema);
  EXPECT_ERROR(test.check("gauntlet"), kUsage, "valid_effect is defined on valid rows alone");
}

// Effects of numbers are constant and those of a category depend on its level alone: nothing moves without a switch.
TEST(Switches, ALinearModelHoldsUnderValidEffectWithoutSwitches) {
  AttackCase test = switching_case(0, false, Norm::kL2, "valid_effect");
  test.model = testing_support::linear_model(normal_tensor({2, 12}, 3), normal_tensor({2}, 4));
  const AttackResult result = test.run("gauntlet(effort=light)");
  EXPECT_EQ(result.original.maps.size(1), 6);
  EXPECT_EQ(mean_value(result), 1);
  AttackCase bent = switching_case(0, false, Norm::kL2, "valid_effect");
  EXPECT_LT(mean_value(bent.run("gauntlet(effort=light)")), 1) << "a network with kinks does not";
}

}  // namespace
}  // namespace holdfast::attack
