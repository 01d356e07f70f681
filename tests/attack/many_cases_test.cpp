// Ten thousand random cases over models and threat models: every returned input by the verifier, and a look at what was covered.
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "attack_case.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/tiles.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::for_images;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::softplus;

constexpr std::int64_t kTrials = 200, kEach = 50, kCaseFeatures = 12;

// Elements 0-2 and 3-4 one-hot, 5-8 on grids, 9-11 free.
Schema table_schema(RandomStream& stream) {
  Schema schema = Schema::of(Layout::vector(kCaseFeatures));
  for (int i = 0; i < kCaseFeatures; ++i) {
    Feature feature{.name = "column " + std::to_string(i)};
    if (i >= 5 && i < 9) feature.step = 1.0 / static_cast<double>(2 + stream.below(40));
    feature.frozen = stream.below(12) == 0;
    schema.features.push_back(feature);
  }
  schema.groups = {{.name = "a", .columns = {0, 1, 2}}, {.name = "b", .columns = {3, 4}}};
  return schema;
}

at::Tensor table_rows(const Schema& schema, std::uint64_t seed) {
  at::Tensor rows = at::zeros({kEach, kCaseFeatures});
  auto values = rows.accessor<float, 2>();
  for (std::int64_t b = 0; b < kEach; ++b) {
    RandomStream stream(seed, "row", static_cast<std::uint64_t>(b));
    values[b][static_cast<std::int64_t>(stream.below(3))] = 1;
    values[b][3 + static_cast<std::int64_t>(stream.below(2))] = 1;
    for (std::int64_t i = 5; i < kCaseFeatures; ++i) {
      const double step = schema.features[static_cast<std::size_t>(i)].step;
      values[b][i] = static_cast<float>(step > 0 ? step * std::floor(stream.uniform() / step) : stream.uniform());
    }
  }
  return rows;
}

std::unique_ptr<Model> random_model(RandomStream& stream) {
  constexpr double kGains[] = {1, 1, 30};
  const op::Activation activation = stream.below(3) == 0 ? softplus(3) : op::Activation{};
  return make_model(mlp_network({.features = kCaseFeatures,
                                 .hidden = 4 + static_cast<std::int64_t>(stream.below(20)),
                                 .classes = 2 + static_cast<std::int64_t>(stream.below(3)),
                                 .seed = 1 + stream.below(1000),
                                 .activation = activation,
                                 .gain = kGains[stream.below(3)]}));
}

ThreatModel random_threat(RandomStream& stream, const Schema& schema) {
  constexpr Norm kNorms[] = {Norm::kL2, Norm::kLinf, Norm::kL1};
  Threat threat{.epsilons = {stream.below(20) == 0 ? 0 : std::pow(10.0, stream.uniform(-4, 0.7))}};
  if (stream.below(2) == 0) threat.box = {0, 1};
  threat.valid = stream.below(3) == 0;
  threat.norm = kNorms[stream.below(3)];
  if (stream.below(4) == 0) threat.tolerance = stream.uniform(0.001, 0.2);
  return ThreatModel::make(threat, schema);
}

AttackCase random_case(std::uint64_t trial, RandomStream& stream) {
  AttackCase test;
  test.schema = table_schema(stream);
  test.model = random_model(stream);
  test.inputs = table_rows(test.schema, trial);
  test.ids = at::arange(kEach, at::kLong);
  test.threat = random_threat(stream, test.schema);
  test.select = stream.below(2) == 0 ? Select::kWorst : Select::kLast;
  return test;
}

// It proposes thousands of points for each sample: fewer samples say as much.
TEST(ManyCases, WhatGauntletReturnsIsAllowed) {
  const TileThread one_thread;
  std::int64_t moved = 0;
  for (std::uint64_t trial = 1000; trial < 1010; ++trial) {
    RandomStream stream(trial, "many cases");
    AttackCase test = random_case(trial, stream);
    test.keep(0, 5);
    const AttackResult result = test.run("gauntlet(effort=light)");
    Verification found;
    ASSERT_NO_THROW(found = verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, "gauntlet"))
        << "trial " << trial << ", " << to_json(test.threat).dump();
    moved += found.moved;
  }
  EXPECT_GT(moved, 10);
}

// Small images, pairs of them and graphs, with what only they have: sides, edges that stay non-negative, attacks on images.
AttackCase other_case(std::uint64_t trial, RandomStream& stream) {
  AttackCase test;
  const std::uint64_t kind = trial % 3;
  test.schema = Schema::of(kind == 0 ? Layout::grid(1, 4, 5) : kind == 1 ? Layout::grid(1, 3, 4, 2) : Layout::graph(6));
  const std::vector<std::int64_t> shape = test.schema.layout.sample_shape();
  std::vector<std::int64_t> batch{10};
  batch.insert(batch.end(), shape.begin(), shape.end());
  test.inputs = normal_tensor(batch, trial + 1).abs().clamp_max(1);
  test.model = make_model(for_images(mlp_network({.features = test.schema.layout.inputs(), .hidden = 16, .seed = 1 + trial})));
  test.ids = at::arange(10, at::kLong);
  constexpr Norm kNorms[] = {Norm::kL2, Norm::kLinf, Norm::kL1};
  constexpr Sides kSides[] = {Sides::kBoth, Sides::kFirst, Sides::kSecond};
  Threat threat;
  if (stream.below(2) == 0) threat.box = {0, 1};
  threat.norm = kNorms[stream.below(3)];
  threat.epsilons = {std::pow(10.0, stream.uniform(-2, 0.3))};
  if (kind == 1) threat.sides = kSides[stream.below(3)];
  if (kind == 2) threat.negative_weights = stream.below(2) == 0;
  test.threat = ThreatModel::make(threat, test.schema);
  test.select = stream.below(2) == 0 ? Select::kWorst : Select::kLast;
  return test;
}

TEST(ManyCases, ImagesPairsAndGraphsToo) {
  const TileThread one_thread;
  const std::vector<std::string> anywhere{"random(samples=4)",     "random_sign(steps=4)", "er(steps=5,step_size=0.5)",
                                          "mse(steps=5)",          "top_t(steps=5)",       "lens(steps=5,t=3)",
                                          "multi(steps=5,pairs=3)"};
  const std::vector<std::string> images{"mass_center(steps=5,step_size=0.3)", "target(steps=5,step_size=0.3)"};
  std::array<std::int64_t, 3> moved{};
  std::int64_t moved_by_images = 0;
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    RandomStream stream(trial, "other cases");
    AttackCase test = other_case(trial, stream);
    const bool of_images = trial % 6 == 0;
    const std::string& call = of_images ? images[stream.below(images.size())] : anywhere[stream.below(anywhere.size())];
    const AttackResult result = test.run(call);
    Verification found;
    ASSERT_NO_THROW(found = verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, call))
        << "trial " << trial << ", " << call << ", " << to_json(test.threat).dump();
    moved[trial % 3] += found.moved;
    if (of_images) moved_by_images += found.moved;
  }
  for (const std::int64_t count : moved) EXPECT_GT(count, 60);
  EXPECT_GT(moved_by_images, 30);
}

TEST(ManyCases, EveryReturnedInputIsAllowed) {
  const TileThread one_thread;
  const std::vector<std::string> calls{"random(samples=4)",
                                       "random(samples=4,from=sphere)",
                                       "random_sign(steps=4)",
                                       "random_sign(steps=4,mode=walk,step_size=0.2)",
                                       "er(steps=5)",
                                       "er(steps=5,step_size=3)",
                                       "er(steps=5,start=random,schedule=cosine,momentum=0.75)",
                                       "mse(steps=5)",
                                       "top_t(steps=5)",
                                       "lens(steps=5,t=3)",
                                       "multi(steps=5,pairs=3)"};
  std::int64_t cases = 0, moved = 0, valid_moved = 0, switched = 0;
  for (std::uint64_t trial = 0; trial < static_cast<std::uint64_t>(kTrials); ++trial) {
    RandomStream stream(trial, "many cases");
    AttackCase test = random_case(trial, stream);
    const std::string& call = calls[stream.below(calls.size())];
    const AttackResult result = test.run(call);
    Verification found;
    ASSERT_NO_THROW(found = verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, call))
        << "trial " << trial << ", " << call << ", " << to_json(test.threat).dump();
    cases += kEach;
    moved += found.moved;
    if (!test.threat.valid) continue;
    valid_moved += found.moved;
    switched += (result.perturbed.slice(1, 0, 5) != test.inputs.slice(1, 0, 5)).any(1).sum().item<std::int64_t>();
  }
  EXPECT_EQ(cases, 10000);
  EXPECT_GT(moved, 3000);
  EXPECT_GT(valid_moved, 300);
  EXPECT_GT(switched, 30);
}

}  // namespace
}  // namespace holdfast::attack
