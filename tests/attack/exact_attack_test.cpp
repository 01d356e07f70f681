// exact: the least value of all cells, by a search that knows no bounds; what it proves, refuses and does at its limit.
#include <cmath>

#include <gtest/gtest.h>

#include "attack_case.h"
#include "holdfast/attack/verify.h"
#include "holdfast/core/rng.h"
#include "pattern_search.h"
#include "support/errors.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::OneHiddenLayer;
using testing_support::PatternSearch;

constexpr std::int64_t kCellFeatures = 9, kCellSamples = 12;

std::vector<double> plain_numbers(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

AttackCase cell_case(double radius, std::uint64_t seed, at::ScalarType type = at::kFloat) {
  AttackCase test;
  test.model = make_model(mlp_network({.features = kCellFeatures, .hidden = 12, .seed = seed, .type = type}));
  test.schema = Schema::of(Layout::vector(kCellFeatures));
  test.inputs = normal_tensor({kCellSamples, kCellFeatures}, 300 + seed, type).mul_(0.35);
  test.ids = at::arange(kCellSamples, at::kLong);
  test.threat = ThreatModel::make({.epsilons = {radius}}, test.schema);
  return test;
}

// Of the top k; with k = 0 of Kendall's tau-b.
double least_of_all_patterns(const AttackCase& test, std::int64_t sample, std::size_t k = 4) {
  const Network& network = *test.model->network();
  const std::int64_t predicted = test.model->logits(test.inputs.slice(0, sample, sample + 1)).argmax(1).item<std::int64_t>();
  const auto& hidden = std::get<op::Linear>(network.nodes()[1].operation);
  const auto& out = std::get<op::Linear>(network.nodes()[3].operation);
  OneHiddenLayer layer{.bias = plain_numbers(hidden.bias),
                       .out = plain_numbers(out.weight[predicted] - out.weight[1 - predicted])};
  for (std::int64_t h = 0; h < hidden.weight.size(0); ++h) layer.weight.push_back(plain_numbers(hidden.weight[h]));
  layer.offset = (out.bias[predicted] - out.bias[1 - predicted]).item<double>();
  return PatternSearch(layer, plain_numbers(test.inputs[sample]), test.threat.epsilon, k, kMargin).least();
}

TEST(ExactAttack, FindsAndProvesTheLeastValueOfAllCells) {
  for (const double radius : {0.03, 0.1, 0.2}) {
    std::int64_t closed = 0, moved = 0;
    for (const std::uint64_t seed : {1, 2, 3}) {
      AttackCase test = cell_case(radius, seed);
      const AttackResult result = test.run("exact");
      (void)verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, "exact");
      for (std::int64_t b = 0; b < kCellSamples; ++b) {
        const SampleOutcome& found = result.samples[static_cast<std::size_t>(b)];
        const double least = least_of_all_patterns(test, b);
        EXPECT_LE(found.proven, least + 1e-12) << "radius " << radius << ", seed " << seed << ", sample " << b;
        EXPECT_GE(found.value, least - 1e-12) << "radius " << radius << ", seed " << seed << ", sample " << b;
        closed += found.proven == found.value ? 1 : 0;
        moved += least < 1 ? 1 : 0;
      }
    }
    EXPECT_GE(closed, 34) << "of 36 at radius " << radius;
    EXPECT_GT(moved, 5);
  }
}

TEST(ExactAttack, FindsAndProvesTheLeastRankCorrelationOfAllCells) {
  for (const double radius : {0.03, 0.1, 0.2}) {
    std::int64_t closed = 0, negative = 0, reached = 0;
    for (const std::uint64_t seed : {1, 2, 3}) {
      AttackCase test = cell_case(radius, seed);
      test.metric = "kendall";
      const AttackResult result = test.run("exact"), attacked = test.run("gauntlet(effort=light)");
      (void)verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, "exact");
      for (std::int64_t b = 0; b < kCellSamples; ++b) {
        const SampleOutcome& found = result.samples[static_cast<std::size_t>(b)];
        const double least = least_of_all_patterns(test, b, 0), other = attacked.samples[static_cast<std::size_t>(b)].value;
        EXPECT_LE(found.proven, least + 1e-9) << "radius " << radius << ", seed " << seed << ", sample " << b;
        EXPECT_GE(found.value, least - 1e-9) << "radius " << radius << ", seed " << seed << ", sample " << b;
        EXPECT_LE(found.proven, other);
        closed += found.proven == found.value ? 1 : 0;
        reached += other <= found.value + 1e-9 ? 1 : 0;
        negative += least < 0 ? 1 : 0;
      }
    }
    EXPECT_GE(closed, 34) << "of 36 at radius " << radius;
    EXPECT_GE(reached, 35) << "gauntlet searches these cells too, radius " << radius;
    EXPECT_GE(negative, radius == 0.2 ? 4 : 0) << "the bound has two forms, above and below 0";
  }
}

// Features of no influence are equal in every map: such pairs count in the denominator alone.
TEST(ExactAttack, TiedFeaturesLowerTheRankCorrelationAndNotTheBound) {
  AttackCase test = cell_case(0.2, 4);
  Network network = *test.model->network();
  Network with_ties;
  for (Node node : network.nodes()) {
    if (auto* linear = std::get_if<op::Linear>(&node.operation); linear != nullptr && linear->weight.size(1) == kCellFeatures) {
      linear->weight = linear->weight.clone();
      linear->weight.slice(1, 0, 3).zero_();
    }
    with_ties.add(node.name, node.operation);
  }
  test.model = make_model(std::move(with_ties));
  test.metric = "kendall";
  const AttackResult result = test.run("exact");
  std::int64_t closed = 0;
  for (std::int64_t b = 0; b < kCellSamples; ++b) {
    const SampleOutcome& found = result.samples[static_cast<std::size_t>(b)];
    const double least = least_of_all_patterns(test, b, 0);
    EXPECT_LE(found.proven, least + 1e-9);
    EXPECT_GE(found.value, least - 1e-9);
    closed += found.proven == found.value ? 1 : 0;
  }
  EXPECT_GE(closed, kCellSamples - 1);
}

// Nobody has the answer for deeper networks, other norms, boxes and metrics: attacks must not be below what is proven, nor much
// above what was found.
TEST(ExactAttack, IsNeverAboveWhatAttacksFindInAnyThreatModel) {
  std::int64_t closed = 0, all = 0;
  double exact_sum = 0, attacked_sum = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    AttackCase test = cell_case(0.2, seed);
    const op::Activation activation = seed % 2 == 0 ? op::Activation{op::Activation::Kind::kLeakyRelu, 0.2} : op::Activation{};
    Network network;
    network.add("input", op::Input{});
    network.add("scale", op::Affine{at::full({1}, 1.5f), at::full({1}, -0.1f)});
    const std::vector<std::int64_t> sizes =
        seed % 4 < 2 ? std::vector<std::int64_t>{kCellFeatures, 8, 6, 3} : std::vector<std::int64_t>{kCellFeatures, 10, 3};
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      const double scale = 1 / std::sqrt(static_cast<double>(sizes[i]));
      network.add("linear" + std::to_string(i), op::Linear{normal_tensor({sizes[i + 1], sizes[i]}, 10 * seed + i) * scale,
                                                           normal_tensor({sizes[i + 1]}, 500 + 10 * seed + i) * 0.3});
      if (i + 2 < sizes.size()) network.add("act" + std::to_string(i), activation);
    }
    test.model = make_model(std::move(network));
    test.explainer = "saliency(target=logit)";
    test.metric = seed % 3 == 0 ? "lens_precision(k=3,w=1)" : seed % 3 == 1 ? "top_k(k=3)" : "lens_recall(k=3,w=1)";
    test.inputs = test.inputs.clamp(-1, 1);
    if (seed % 2 == 0) test.schema.groups = {{.name = "colour", .columns = {2, 3, 4}, .levels = {"red", "green", "blue"}}};
    if (seed > 4) {
      for (int i = 0; i < kCellFeatures; ++i) test.schema.features.push_back({.name = "x", .low = -1, .frozen = i == 5});
    }
    const Norm norm = seed % 2 == 0 ? Norm::kLinf : Norm::kL2;
    Threat threat{.norm = norm, .epsilons = {norm == Norm::kLinf ? 0.08 : 0.25}};
    if (seed > 3) threat.box = {-1, 1};
    test.threat = ThreatModel::make(threat, test.schema);
    const AttackResult result = test.run("exact"), attacked = test.run("gauntlet(effort=light)");
    (void)verify(*test.model, test.threat, test.inputs, result.perturbed, test.ids, "exact");
    for (std::size_t b = 0; b < result.samples.size(); ++b) {
      EXPECT_LE(result.samples[b].proven, attacked.samples[b].value) << "seed " << seed << ", sample " << b;
      EXPECT_LE(result.samples[b].proven, result.samples[b].value);
      closed += result.samples[b].proven == result.samples[b].value ? 1 : 0;
      exact_sum += result.samples[b].value;
      attacked_sum += attacked.samples[b].value;
      ++all;
    }
  }
  EXPECT_GE(closed, all * 9 / 10) << "of " << all;
  EXPECT_LE(exact_sum, attacked_sum);
  EXPECT_LT(exact_sum, 0.98 * static_cast<double>(all)) << "the cases should be worth attacking";
}

TEST(ExactAttack, AtItsLimitTheTruthLiesBetweenWhatIsProvenAndWhatIsFound) {
  AttackCase test = cell_case(0.5, 2);
  const AttackResult whole = test.run("exact"), some = test.run("exact(nodes=3)");
  std::int64_t open = 0;
  for (std::size_t b = 0; b < whole.samples.size(); ++b) {
    EXPECT_LE(some.samples[b].proven, whole.samples[b].proven);
    EXPECT_GE(some.samples[b].value, whole.samples[b].value);
    EXPECT_LE(some.samples[b].nodes, 5);
    open += some.samples[b].proven < some.samples[b].value ? 1 : 0;
  }
  EXPECT_GT(open, 2);
}

// All units are off beyond the kink: the map is zero, and the order of the features decides.
TEST(ExactAttack, MapsOfZerosAreNoTies) {
  AttackCase test = cell_case(0.5, 1);
  Network network;
  network.add("input", op::Input{});
  network.add("hidden", op::Linear{at::tensor({1.0f, 2.0f, 3.0f, 4.0f}).unsqueeze(0), at::tensor({0.1f})});
  network.add("act", op::Activation{});
  network.add("out", op::Linear{at::tensor({1.0f, -1.0f}).unsqueeze(1), at::tensor({1.0f, 0.0f})});
  test.model = make_model(std::move(network));
  test.schema = Schema::of(Layout::vector(4));
  test.inputs = at::zeros({1, 4});
  test.ids = at::zeros({1}, at::kLong);
  test.metric = "top_k(k=2)";
  test.threat = ThreatModel::make({.epsilons = {0.5}}, test.schema);
  const AttackResult result = test.run("exact");
  EXPECT_EQ(result.samples[0].value, 0) << "features 0 and 1 in place of 2 and 3";
  EXPECT_EQ(result.samples[0].proven, 0);
}

TEST(ExactAttack, RefusesWhatItCannotProve) {
  AttackCase test = cell_case(0.1, 1);
  test.explainer = "integrated_gradients(steps=4)";
  EXPECT_ERROR(test.check("exact"), kUsage, "it is for saliency");
  test.explainer = "saliency";
  test.metric = "spearman";
  EXPECT_ERROR(test.check("exact"), kUsage, "use top_k, lens_precision, lens_recall or kendall");
  test.metric = "top_k(k=4)";
  test.threat = ThreatModel::make({.norm = Norm::kL1}, test.schema);
  EXPECT_ERROR(test.check("exact"), kUsage, "this one is l1");
  test.threat = ThreatModel::make({.tolerance = 0.1}, test.schema);
  EXPECT_ERROR(test.check("exact"), kUsage, "tolerance");
  test.threat = ThreatModel::make({}, test.schema);
  test.model = make_model(mlp_network({.features = kCellFeatures, .classes = 3}));
  EXPECT_ERROR(test.check("exact"), kUsage, "with 3 classes the ranking by the probability changes inside a cell");
  test.model = make_model(mlp_network({.features = kCellFeatures, .activation = testing_support::softplus(2)}));
  EXPECT_ERROR(test.check("exact"), kUsage, "softplus");
  test.model = make_model([](const at::Tensor& x) { return x; }, Capabilities{}, at::kCPU);
  EXPECT_ERROR(test.check("exact"), kUsage, "does not show its layers");
  test.model = make_model(mlp_network({.features = 4096, .hidden = 4096}));
  test.schema = Schema::of(Layout::vector(4096));
  test.inputs = at::zeros({1, 4096});
  test.ids = at::zeros({1}, at::kLong);
  test.threat = ThreatModel::make({}, test.schema);
  EXPECT_ERROR(test.check("exact"), kUsage, "units times inputs may be at most 8388608");
}

}  // namespace
}  // namespace holdfast::attack
