// Attacks on chains of linear layers, whose passes run without autograd, against attacks on the same network that autograd runs.
#include <gtest/gtest.h>

#include "../../src/attack/gauntlet/slopes.h"
#include "attack_case.h"

namespace holdfast::attack::chain_attack_test {
namespace {

using testing_support::AttackCase;
using testing_support::mean_value;
using testing_support::mlp_network;
using testing_support::normal_tensor;
using testing_support::softplus;

AttackCase chain_case(const op::Activation& activation, bool by_autograd) {
  Network network = mlp_network({.hidden = 24, .activation = activation});
  if (by_autograd) network.add("same", op::Multiply{});  // no chain: else the same
  AttackCase test;
  test.model = make_model(std::move(network));
  test.inputs = normal_tensor({60, 12}, 50);
  test.ids = at::arange(60, at::kLong);
  return test;
}

// Rounding may send a sample over a kink a step earlier or later; what all samples show stays.
TEST(ChainAttack, FindsWhatItFindsWithAutograd) {
  for (const op::Activation& activation : {op::Activation{}, softplus(3)}) {
    for (const char* attack : {"er(steps=40)", "mse(steps=40)", "top_t(steps=40)", "er(steps=30,surrogate=softplus,beta=5)",
                               "er(steps=30,schedule=cosine,momentum=0.5)", "multi(steps=20,pairs=1)"}) {
      AttackCase fused = chain_case(activation, false), reference = chain_case(activation, true);
      const AttackResult here = fused.run(attack), there = reference.run(attack);
      EXPECT_NEAR(mean_value(here), mean_value(there), 0.01) << attack;
      std::int64_t apart = 0;
      for (std::size_t i = 0; i < here.samples.size(); ++i) {
        EXPECT_EQ(here.samples[i].evaluations, there.samples[i].evaluations) << attack;
        apart += here.samples[i].value != there.samples[i].value;
      }
      EXPECT_LE(apart, 3) << attack;
    }
  }
}

TEST(ChainAttack, GauntletFindsAsMuch) {
  for (const char* metric : {"top_k(k=4)", "spearman"}) {
    AttackCase fused = chain_case(softplus(3), false), reference = chain_case(softplus(3), true);
    fused.metric = reference.metric = metric;
    EXPECT_NEAR(mean_value(fused.run("gauntlet(effort=light)")), mean_value(reference.run("gauntlet(effort=light)")), 0.01);
  }
}

constexpr std::int64_t kRows = 20, kFeatures = 17, kTop = 5;

// Values scaled so that the largest is 1, masks of a top set, and weights.
struct Rows {
  at::Tensor values, top, near, weights;
  Rows() {
    values = normal_tensor({kRows, kFeatures}, 1).abs();
    values = values / values.amax(1, true);
    const at::Tensor order = normal_tensor({kRows, kFeatures}, 2).argsort(/*dim=*/1, /*descending=*/false);
    top = at::zeros_like(values).scatter_(1, order.slice(1, 0, kTop), 1.0);
    near = at::zeros_like(values).scatter_(1, order.slice(1, 0, kTop + 2), 1.0);
    weights = 0.1 + normal_tensor({kRows, kFeatures}, 3).square();
  }
};

template <class Slope>
void expect_rows(const at::Tensor& expected, const Slope& slope) {
  std::vector<float> found(kFeatures);
  for (std::int64_t row = 0; row < kRows; ++row) {
    slope(row, found.data());
    const double scale = expected[row].abs().max().item<double>();
    for (std::int64_t i = 0; i < kFeatures; ++i)
      EXPECT_NEAR(found[static_cast<std::size_t>(i)], expected[row][i].item<double>(), 2e-5 * scale) << row << ", " << i;
  }
}

const float* row_of(const at::Tensor& tensor, std::int64_t row) {
  return tensor.const_data_ptr<float>() + row * kFeatures;
}

std::span<const float> values_of(const Rows& rows, std::int64_t row) {
  return {row_of(rows.values, row), static_cast<std::size_t>(kFeatures)};
}

TEST(GauntletSlopes, ContrastIsTheDerivativeOfTheLogarithmOfTheRatio) {
  const Rows rows;
  std::vector<float> scratch;
  for (const std::int64_t k : {kTop, kFeatures}) {  // more than there are outside: all of them
    const at::Tensor a = rows.values.to(at::kDouble).requires_grad_(), weighted = a * rows.weights;
    const at::Tensor others = weighted * (1 - rows.near), outside = std::get<0>(others.topk(k, 1)).sum(1);
    const at::Tensor value = (weighted * rows.top).sum(1).log() - outside.log();
    expect_rows(torch::autograd::grad({value.sum()}, {a})[0], [&](std::int64_t row, float* slope) {
      gauntlet::slopes::contrast(values_of(rows, row), k, row_of(rows.top, row), row_of(rows.near, row),
                                 row_of(rows.weights, row), scratch, slope);
    });
  }
}

TEST(GauntletSlopes, GapsIsTheDerivativeOfTheWeightedSumOverTheNorm) {
  const Rows rows;
  const at::Tensor a = rows.values.to(at::kDouble).requires_grad_();
  const at::Tensor norm = a.norm(2, 1, true), value = (rows.weights * a).sum(1, true) / norm;
  const at::Tensor expected = torch::autograd::grad({value.sum()}, {a})[0] * norm;  // sizes do not matter
  expect_rows(expected, [&](std::int64_t row, float* slope) {
    gauntlet::slopes::gaps(values_of(rows, row), row_of(rows.weights, row), slope);
  });
}

TEST(GauntletSlopes, ThresholdIsTheDerivativeOfTheSoftCounts) {
  const Rows rows;
  std::vector<float> scratch;
  for (const double temperature : {0.1, 0.3, 1.0}) {
    const at::Tensor a = rows.values.to(at::kDouble).clamp_min(1e-6).requires_grad_();
    const at::Tensor tau = std::get<0>(a.detach().topk(kTop + 1, 1)).slice(1, kTop - 1).mean(1, true);
    const at::Tensor q = ((a / tau).log() / temperature).sigmoid();
    const auto pull = [&](const at::Tensor& weights) {  // scaled so that slopes by the logarithms sum to 1
      const at::Tensor slopes = torch::autograd::grad({(weights * q).sum()}, {a}, {}, true)[0];
      return slopes / (slopes * a.detach()).sum(1, true);
    };
    const at::Tensor outside = (1 - rows.near).contiguous();
    expect_rows(pull(rows.top) - pull(outside), [&](std::int64_t row, float* slope) {
      gauntlet::slopes::threshold(values_of(rows, row), kTop, temperature, row_of(rows.top, row), row_of(outside, row), scratch,
                                  slope);
    });
  }
}

}  // namespace
}  // namespace holdfast::attack::chain_attack_test
