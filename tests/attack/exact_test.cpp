// How often gauntlet finds the very worst point: n-32-2 ReLU networks, small balls, against an exact search over all activation
// patterns that the ball holds.
#include <gtest/gtest.h>

#include "attack_case.h"
#include "holdfast/core/rng.h"
#include "pattern_search.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::OneHiddenLayer;
using testing_support::PatternSearch;

constexpr std::int64_t kExactFeatures = 14, kHidden = 32, kExactSamples = 40;
constexpr std::size_t kTop = 5;

AttackCase small_ball(double radius, std::uint64_t seed) {
  AttackCase test;
  test.model = make_model(mlp_network({.features = kExactFeatures, .hidden = kHidden, .seed = seed}));
  test.schema = Schema::of(Layout::vector(kExactFeatures));
  // Inputs of the size of scaled features: as many boundaries nearby as in a trained network.
  test.inputs = normal_tensor({kExactSamples, kExactFeatures}, 200 + seed).mul_(0.35);
  test.ids = at::arange(kExactSamples, at::kLong);
  test.metric = "top_k(k=5)";
  test.threat = ThreatModel::make({.epsilons = {radius}}, test.schema);
  return test;
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

OneHiddenLayer layer_of(const Network& network, std::int64_t predicted) {
  const auto& hidden = std::get<op::Linear>(network.nodes()[1].operation);
  const auto& out = std::get<op::Linear>(network.nodes()[3].operation);
  OneHiddenLayer layer{.bias = numbers(hidden.bias), .out = numbers(out.weight[predicted] - out.weight[1 - predicted])};
  for (std::int64_t h = 0; h < hidden.weight.size(0); ++h) layer.weight.push_back(numbers(hidden.weight[h]));
  layer.offset = (out.bias[predicted] - out.bias[1 - predicted]).item<double>();
  return layer;
}

PatternSearch search(const AttackCase& test, std::int64_t sample, double radius, OneHiddenLayer& layer) {
  const at::Tensor logits = test.model->logits(test.inputs.slice(0, sample, sample + 1));
  layer = layer_of(*test.model->network(), logits.argmax(1).item<std::int64_t>());
  return {layer, numbers(test.inputs[sample]), radius, kTop, kMargin};
}

class Exact : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(Radii, Exact, testing::Values(0.03, 0.1));

TEST_P(Exact, GauntletIsOptimalInAlmostAllSamples) {
  std::int64_t optimal = 0, samples = 0, moved = 0, patterns = 0;
  for (const std::uint64_t seed : {11, 12}) {
    AttackCase test = small_ball(GetParam(), seed);
    const AttackResult result = test.run("gauntlet");
    for (std::int64_t i = 0; i < kExactSamples; ++i) {
      OneHiddenLayer layer;
      const PatternSearch exact = search(test, i, GetParam(), layer);
      const double found = result.samples[static_cast<std::size_t>(i)].value;
      EXPECT_GE(found, exact.least() - 1e-12) << "seed " << seed << ", sample " << i << ": below the proved least value";
      optimal += found <= exact.least() + 1e-12;
      moved += exact.least() < 1;
      patterns += static_cast<std::int64_t>(exact.patterns());
      ++samples;
    }
  }
  RecordProperty("optimal", static_cast<int>(optimal));
  RecordProperty("patterns", static_cast<int>(patterns));
  EXPECT_GE(static_cast<double>(optimal), 0.95 * static_cast<double>(samples)) << optimal << " of " << samples;
  EXPECT_GE(moved, samples / 4) << "the case should be worth attacking";
}

// The search itself: no random point of the ball that keeps its class is below what it proves, and what it finds is not out of
// reach for points in plenty.
TEST_P(Exact, ThePatternSearchHoldsAgainstManyPoints) {
  AttackCase test = small_ball(GetParam(), 14);
  std::int64_t reached = 0, patterns = 0;
  for (std::int64_t i = 0; i < 12; ++i) {
    OneHiddenLayer layer;
    const PatternSearch exact = search(test, i, GetParam(), layer);
    const std::vector<double> clean = numbers(test.inputs[i]);
    RandomStream stream(7, "points", static_cast<std::uint64_t>(i));
    std::set<std::vector<char>> seen;
    for (int draw = 0; draw < 20000; ++draw) {
      std::vector<double> x = clean, way(clean.size());
      double size = 0;
      for (double& w : way) {
        w = stream.normal();
        size += w * w;
      }
      const double length = GetParam() * (draw % 2 ? 1 : std::pow(stream.uniform(), 1.0 / kExactFeatures)) / std::sqrt(size);
      for (std::size_t j = 0; j < x.size(); ++j) x[j] += length * way[j];
      std::vector<char> on;
      double margin = layer.offset;
      const std::vector<double> z = layer.units(x);
      for (std::size_t h = 0; h < z.size(); ++h) {
        on.push_back(z[h] > 0);
        margin += layer.out[h] * std::max(z[h], 0.0);
      }
      if (margin < kMargin) continue;
      seen.insert(on);
      ASSERT_GE(exact.overlap(on), exact.least());
    }
    EXPECT_LE(seen.size(), exact.patterns());
    reached += static_cast<std::int64_t>(seen.size());
    patterns += static_cast<std::int64_t>(exact.patterns());
  }
  EXPECT_GE(3 * reached, patterns) << "most patterns are met by chance: " << reached << " of " << patterns;
}

}  // namespace
}  // namespace holdfast::attack
