#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "attack_case.h"
#include "holdfast/core/torch.h"

namespace holdfast::attack {
namespace {

using testing_support::AttackCase;
using testing_support::linear_model;
using testing_support::normal_tensor;

// Keeps every point that the attack tries: the model it attacks writes them down.
class Points {
 public:
  explicit Points(std::int64_t features) {
    const at::Tensor weight = normal_tensor({2, features}, 1);
    test.schema = Schema::of(Layout::vector(features));
    test.metric = "top_k(k=1)";
    test.inputs = at::zeros({1, features});
    test.ids = at::arange(1, at::kLong);
    test.model = make_model(
        [this, weight](const at::Tensor& x) {
          seen.push_back(x.detach().clone());
          return x.matmul(weight.t()) + torch::tensor({100.0f, 0.0f});
        },
        Capabilities{}, at::kCPU);
  }
  // [samples, features], in double; without the clean and the final evaluations.
  at::Tensor tried(const std::string& attack, const ThreatModel& threat) {
    test.threat = threat;
    const AttackTask task = test.task();
    seen.clear();
    (void)attacks().make(attack)->run(task);
    return at::cat(std::vector<at::Tensor>(seen.begin() + 1, seen.end() - 2)).to(at::kDouble);
  }

  AttackCase test;
  std::vector<at::Tensor> seen;
};

// In a ball of dimension n the share of points within radius r is (r / epsilon)^n, in every norm.
TEST(Random, PointsAreUniformInTheBall) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    Points points(3);
    const ThreatModel threat = ThreatModel::make({.norm = norm, .epsilons = {2}}, points.test.schema);
    const at::Tensor tried = points.tried("random(samples=4000)", threat);
    ASSERT_EQ(tried.size(0), 4000);
    const at::Tensor radius = threat.distance(tried, at::zeros_like(tried)) / 2;
    EXPECT_LE(radius.max().item<double>(), 1);
    for (const double r : {0.5, 0.8}) {
      EXPECT_NEAR((radius <= r).to(at::kDouble).mean().item<double>(), std::pow(r, 3), 0.035) << to_string(norm) << " " << r;
    }
    EXPECT_LE(tried.mean(0).abs().max().item<double>(), 0.08) << "centred";
    const at::Tensor spread = tried.square().mean(0);
    EXPECT_LE((spread / spread.mean() - 1).abs().max().item<double>(), 0.12) << "no element is preferred";
  }
}

TEST(Random, PointsOnTheSphereHaveTheFullRadius) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    Points points(5);
    const ThreatModel threat = ThreatModel::make({.norm = norm, .epsilons = {2}}, points.test.schema);
    const at::Tensor tried = points.tried("random(samples=50,from=sphere)", threat);
    EXPECT_NEAR(threat.distance(tried, at::zeros_like(tried)).min().item<double>(), 2, 1e-5) << to_string(norm);
  }
}

TEST(Random, FrozenFeaturesLeaveTheWholeBallToTheOthers) {
  Points points(3);
  points.test.schema.features = {{.name = "a"}, {.name = "b", .frozen = true}, {.name = "c"}};
  const ThreatModel threat = ThreatModel::make({.epsilons = {2}}, points.test.schema);
  const at::Tensor tried = points.tried("random(samples=2000)", threat);
  EXPECT_EQ(tried.select(1, 1).abs().max().item<double>(), 0);
  const at::Tensor radius = threat.distance(tried, at::zeros_like(tried)) / 2;
  EXPECT_NEAR((radius <= 0.5).to(at::kDouble).mean().item<double>(), 0.25, 0.04);
}

TEST(Random, MorePointsAreNeverBetterForTheDefender) {
  AttackCase test;
  test.threat.epsilon = 2;
  const AttackResult few = test.run("random(samples=20)"), many = test.run("random(samples=200)");
  double sum = 0;
  for (std::size_t b = 0; b < few.samples.size(); ++b) {
    EXPECT_LE(many.samples[b].value, few.samples[b].value);
    EXPECT_LE(few.samples[b].value, 1);
    sum += few.samples[b].value - many.samples[b].value;
  }
  EXPECT_GT(sum, 0) << "more points should find something";
}

// Every point is its own run from the clean input: "the last one before a flip" would mean nothing.
TEST(Random, ReturnsTheWorstPointWhateverIsSelected) {
  AttackCase test;
  test.threat.epsilon = 2;
  const at::Tensor worst = test.run("random(samples=30)").perturbed;
  test.select = Select::kLast;
  EXPECT_TRUE(at::equal(test.run("random(samples=30)").perturbed, worst));
}

TEST(Random, WorksWithoutDoubleBackward) {
  AttackCase test;
  const Network network = test.model->network()->clone();
  test.model =
      make_model([&](const at::Tensor& x) { return network.logits(x); }, Capabilities{.double_backward = false}, at::kCPU);
  EXPECT_NO_THROW(test.run("random(samples=3)"));
}

}  // namespace
}  // namespace holdfast::attack
