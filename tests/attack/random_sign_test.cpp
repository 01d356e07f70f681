#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "attack_case.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::normal_tensor;

// A model that writes down every point it is asked about, in double precision; its class never changes.
struct Watched {
  AttackCase test;
  std::vector<at::Tensor> seen;

  Watched() {
    const at::Tensor weight = normal_tensor({2, 12}, 1, at::kDouble);
    test.inputs = at::zeros({3, 12}, at::kDouble);
    test.ids = at::arange(3, at::kLong);
    test.model = make_model(
        [this, weight](const at::Tensor& x) {
          seen.push_back(x.detach().clone());
          return x.matmul(weight.t()) + torch::tensor({100.0, 0.0}, at::kDouble);
        },
        Capabilities{}, at::kCPU);
  }
  // The clean point first.
  std::vector<at::Tensor> points(const std::string& attack, Norm norm) {
    test.threat = ThreatModel::make({.norm = norm, .epsilons = {0.4}}, test.schema);
    const AttackTask task = test.task();
    seen.clear();
    (void)attacks().make(attack)->run(task);
    return {seen.begin(), seen.end() - 2};  // without the two explanations that are returned
  }
};

TEST(RandomSign, FreshPointsAreCornersOfTheBall) {
  Watched watched;
  const auto corners = watched.points("random_sign(steps=200)", Norm::kLinf);
  at::Tensor sum = at::zeros({3, 12}, at::kDouble);
  for (std::size_t i = 1; i < corners.size(); ++i) {
    EXPECT_LE((corners[i].abs() - 0.4).abs().max().item<double>(), 1e-12);
    sum += corners[i].sign();
  }
  EXPECT_EQ(corners.size(), 201U);
  EXPECT_LE(sum.abs().max().item<double>(), 60) << "signs are even: 200 of them stay within four deviations";
  EXPECT_FALSE(at::equal(corners[1][0], corners[1][1])) << "each sample has its own";
  EXPECT_FALSE(at::equal(corners[1], corners[2])) << "and each point";
}

TEST(RandomSign, InL2PointsHaveTheFullRadiusAndEqualElements) {
  Watched watched;
  for (const at::Tensor& point : watched.points("random_sign(steps=5)", Norm::kL2)) {
    if (point.abs().max().item<double>() == 0) continue;  // the clean one
    EXPECT_LE((point.norm(2, 1) - 0.4).abs().max().item<double>(), 1e-9);
    EXPECT_LE((point.abs() - point.abs().mean()).abs().max().item<double>(), 1e-9);
  }
}

TEST(RandomSign, AWalkGoesByPlusOrMinusAStepAndStaysInTheBall) {
  Watched watched;
  const auto points = watched.points("random_sign(steps=60,mode=walk,step_size=0.1)", Norm::kLinf);
  bool projected = false;
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_LE(points[i].abs().max().item<double>(), 0.4 + 1e-12);
    const at::Tensor move = (points[i] - points[i - 1]).abs();
    const at::Tensor inside = points[i].abs() < 0.39;
    projected = projected || (move < 0.05).any().item<bool>();
    EXPECT_LE((move.index({inside}) - 0.1).abs().max().item<double>(), 1e-9);
  }
  EXPECT_TRUE(projected) << "sixty steps should meet the wall";
}

TEST(RandomSign, FreshPointsHaveNoLastOneAWalkHas) {
  EXPECT_EQ(attacks().make("random_sign")->selects(Select::kLast), Select::kWorst);
  EXPECT_EQ(attacks().make("random_sign(mode=walk)")->selects(Select::kLast), Select::kLast);
}

TEST(RandomSign, CountsStepsThatWereBroughtBack) {
  AttackCase test;
  test.metric = "l2";  // nothing is done early
  test.threat = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {0.1}}, test.schema);
  for (const SampleOutcome& outcome : test.run("random_sign(steps=30,mode=walk,step_size=0.1)").samples) {
    EXPECT_GE(outcome.projections, 25) << "two steps the same way leave the ball, in one of twelve elements surely";
  }
  for (const SampleOutcome& outcome : test.run("random_sign(steps=30)").samples) EXPECT_EQ(outcome.projections, 0);
}

}  // namespace
}  // namespace holdfast::attack
