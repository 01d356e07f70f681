#include "holdfast/attack/threat.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/torch.h"
#include "support/errors.h"
#include "support/small_models.h"

namespace holdfast::attack {
namespace {

using testing_support::normal_tensor;

ThreatModel threat(Norm norm, double epsilon, std::optional<std::pair<double, double>> box = std::nullopt) {
  return ThreatModel::make({.norm = norm, .epsilons = {epsilon}, .box = box}, Schema::of(Layout::vector(6)));
}

double farthest(const ThreatModel& model, const at::Tensor& points, const at::Tensor& clean) {
  return model.distance(points, clean).max().item<double>();
}

TEST(Threat, ProjectsToTheNearestPointOfAnL2Ball) {
  const ThreatModel model = threat(Norm::kL2, 0.5);
  const at::Tensor clean = normal_tensor({20, 6}, 1), far = clean + normal_tensor({20, 6}, 2);
  const at::Tensor difference = far - clean;
  EXPECT_TRUE(at::allclose(model.project(far, clean), clean + 0.5 * difference / difference.norm(2, 1, true), 1e-5, 1e-6));
}

// Two tokens of three numbers and their flag, each in a ball of its own.
TEST(Threat, TokensHaveABallEach) {
  const Schema schema = Schema::of(Layout::tokens(2, 3));
  const at::Tensor clean = normal_tensor({20, 2, 4}, 5), far = clean + normal_tensor({20, 2, 4}, 6);
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    const ThreatModel model = ThreatModel::make({.norm = norm, .epsilons = {0.5}}, schema);
    const at::Tensor near = model.project(far, clean);
    EXPECT_TRUE(at::equal(near.select(2, 3), clean.select(2, 3))) << "the flag is context";
    for (std::int64_t token = 0; token < 2; ++token) {
      const at::Tensor own = clean.select(1, token).slice(1, 0, 3), there = far.select(1, token).slice(1, 0, 3);
      const at::Tensor alone = ThreatModel::make({.norm = norm, .epsilons = {0.5}}, Schema::of(Layout::vector(3)))
                                   .project(there.contiguous(), own.contiguous());
      EXPECT_TRUE(at::allclose(near.select(1, token).slice(1, 0, 3), alone, 1e-6, 1e-7)) << to_string(norm);
    }
    EXPECT_NEAR(farthest(model, near, clean), 0.5, 1e-5);
  }
}

TEST(Threat, ProjectsToTheNearestPointOfAnLinfBallInABox) {
  const ThreatModel model = threat(Norm::kLinf, 0.25, {{0, 1}});
  const at::Tensor clean = normal_tensor({20, 6}, 3).abs().clamp(0, 1), far = clean + normal_tensor({20, 6}, 4);
  EXPECT_TRUE(at::allclose(model.project(far, clean), far.clamp(clean - 0.25, clean + 0.25).clamp(0, 1), 1e-6, 1e-6));
}

// Optimality of the projection p of z to a convex set: <z - p, y - p> <= 0 for every y of it, vertices are enough.
TEST(Threat, ProjectsToTheNearestPointOfAnL1Ball) {
  const ThreatModel model = threat(Norm::kL1, 0.7);
  const at::Tensor clean = normal_tensor({20, 6}, 5, at::kDouble), far = clean + normal_tensor({20, 6}, 6, at::kDouble);
  const at::Tensor nearest = model.project(far, clean);
  EXPECT_LE(farthest(model, nearest, clean), 0.7);
  for (std::int64_t i = 0; i < 6; ++i) {
    for (const double sign : {-1.0, 1.0}) {
      const at::Tensor vertex = clean + at::zeros({6}, at::kDouble).index_put_({i}, sign * 0.7);
      EXPECT_LE(((far - nearest) * (vertex - nearest)).sum(1).max().item<double>(), 1e-6);
    }
  }
}

TEST(Threat, LeavesPointsInsideAlone) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    const ThreatModel model = threat(norm, 100);
    const at::Tensor clean = normal_tensor({5, 6}, 7), near = clean + normal_tensor({5, 6}, 8);
    EXPECT_TRUE(at::equal(model.project(near, clean), near)) << to_string(norm);
  }
}

// Far from zero, rounding a float moves it by more than a small ball's tolerance: the rounded point must be inside.
TEST(Threat, TheRoundedPointIsInside) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    for (const double epsilon : {8.0, 1e-2, 1e-4, 1e-6}) {
      const ThreatModel model = threat(norm, epsilon);
      const at::Tensor clean = normal_tensor({50, 6}, 9).mul_(200), far = clean + normal_tensor({50, 6}, 10).mul_(50);
      EXPECT_LE(farthest(model, model.project(far, clean), clean), epsilon) << to_string(norm) << " " << epsilon;
    }
  }
}

// The definition in plain double arithmetic: to the box, then towards the clean point by as little as brings it into the ball.
std::vector<double> by_definition(Norm norm, double epsilon, double bound, const std::vector<double>& clean,
                                  const std::vector<double>& far) {
  std::vector<double> difference;
  double square = 0, sum = 0;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    difference.push_back(std::clamp(far[i], -bound, bound) - clean[i]);
    square += difference[i] * difference[i];
    sum += std::abs(difference[i]);
  }
  // What is left when every magnitude falls by tau.
  const auto left = [&](double tau) {
    double size = 0;
    for (const double d : difference) size += std::max(0.0, std::abs(d) - tau);
    return size;
  };
  double low = 0, high = sum;
  for (int turn = 0; turn < 100; ++turn) (left((low + high) / 2) > epsilon ? low : high) = (low + high) / 2;
  std::vector<double> point = clean;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const double d = difference[i];
    if (norm == Norm::kL2) point[i] += d * std::min(1.0, epsilon / std::sqrt(square));
    if (norm == Norm::kLinf) point[i] += std::clamp(d, -epsilon, epsilon);
    if (norm == Norm::kL1) point[i] += sum <= epsilon ? d : std::copysign(std::max(0.0, std::abs(d) - high), d);
  }
  return point;
}

TEST(Threat, BoxAndBallHoldTogether) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    const ThreatModel model = threat(norm, 0.4, {{-0.5, 0.5}});
    const at::Tensor clean = normal_tensor({50, 6}, 11).clamp(-0.5, 0.5);
    const at::Tensor far = clean + normal_tensor({50, 6}, 12) * at::logspace(-2, 0.5, 50).unsqueeze(1);
    const at::Tensor points = model.project(far, clean);
    EXPECT_LE(farthest(model, points, clean), 0.4);
    EXPECT_LE(points.abs().max().item<double>(), 0.5);
    const auto row = [](const at::Tensor& rows, std::int64_t b) {
      const at::Tensor values = rows[b].to(at::kDouble).contiguous();
      return std::vector<double>(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
    };
    for (std::int64_t b = 0; b < 50; ++b) {
      const std::vector<double> expected = by_definition(norm, 0.4, 0.5, row(clean, b), row(far, b)), found = row(points, b);
      for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(found[i], expected[i], 2e-6) << to_string(norm) << " " << b;
    }
  }
}

TEST(Threat, FrozenFeaturesComeFromTheSchemaAndDoNotMove) {
  Schema schema = Schema::of(Layout::vector(3));
  schema.features = {{.name = "a"}, {.name = "b", .frozen = true}, {.name = "c"}};
  const ThreatModel model = ThreatModel::make({.epsilons = {1}}, schema);
  const at::Tensor clean = at::zeros({1, 3}), points = model.project(at::full({1, 3}, 9.0f), clean);
  EXPECT_EQ(points[0][1].item<float>(), 0);
  EXPECT_NEAR(points[0][0].item<float>(), std::sqrt(0.5), 1e-6) << "the whole ball is left to the others";
  EXPECT_EQ(to_json(model)["frozen"], 1);
}

TEST(Threat, EpsilonZeroLeavesNothing) {
  for (const Norm norm : {Norm::kL2, Norm::kLinf, Norm::kL1}) {
    const at::Tensor clean = normal_tensor({4, 6}, 13);
    EXPECT_TRUE(at::equal(threat(norm, 0).project(clean + 1, clean), clean));
  }
}

TEST(Threat, DistanceIsTheNorm) {
  const at::Tensor clean = at::zeros({1, 6}), point = torch::tensor({{3.0f, -4.0f, 0.0f, 0.0f, 0.0f, 0.0f}});
  EXPECT_EQ(farthest(threat(Norm::kL2, 1), point, clean), 5);
  EXPECT_EQ(farthest(threat(Norm::kL1, 1), point, clean), 7);
  EXPECT_EQ(farthest(threat(Norm::kLinf, 1), point, clean), 4);
}

TEST(Threat, RefusesWhatMakesNoSense) {
  EXPECT_ERROR(threat(Norm::kL2, -1), kUsage, "epsilon is -1");
  EXPECT_ERROR(threat(Norm::kL2, NAN), kUsage, "epsilon is nan");
  EXPECT_ERROR(threat(Norm::kL2, 1, {{1, 0}}), kUsage, "box 1,0: the lower bound must be below the upper one");
  EXPECT_ERROR(parse_norm("l3"), kUsage, "unknown norm 'l3'");
  EXPECT_EQ(parse_norm("linf"), Norm::kLinf);
}

TEST(Threat, OneSideOfAPairMayStay) {
  const Schema pairs = Schema::of(Layout::vector(3, 2));
  const at::Tensor clean = normal_tensor({4, 2, 3}, 20), far = clean + 9;
  for (const Sides sides : {Sides::kFirst, Sides::kSecond}) {
    const ThreatModel model = ThreatModel::make({.epsilons = {1}, .sides = sides}, pairs);
    const at::Tensor move = model.project(far, clean) - clean;
    const std::int64_t moves = sides == Sides::kFirst ? 0 : 1;
    EXPECT_GT(move.select(1, moves).abs().min().item<double>(), 0.5);
    EXPECT_EQ(move.select(1, 1 - moves).abs().max().item<double>(), 0);
    EXPECT_EQ(to_json(model)["sides"], to_string(sides));
  }
  EXPECT_TRUE(ThreatModel::make({.epsilons = {1}}, pairs).frozen.empty()) << "both, unless asked";
  EXPECT_ERROR(ThreatModel::make({.epsilons = {1}, .sides = Sides::kFirst}, Schema::of(Layout::vector(6))), kUsage,
               "sides=first: the samples are no pairs");
  EXPECT_EQ(parse_sides("second"), Sides::kSecond);
  EXPECT_ERROR(parse_sides("left"), kUsage, "unknown sides 'left'");
}

TEST(Threat, GraphsWithoutNegativeWeightsGetNone) {
  Schema schema = Schema::of(Layout::graph(4));
  const at::Tensor clean = torch::tensor({{0.0f, 1.0f, 0.0f, 2.0f, 0.0f, 1.0f}, {-1.0f, 1.0f, 0.0f, 2.0f, 0.0f, 1.0f}});
  const at::Tensor points = ThreatModel::make({.norm = Norm::kLinf, .epsilons = {0.5}}, schema).project(clean - 0.5, clean);
  EXPECT_TRUE(at::equal(points[0], torch::tensor({0.0f, 0.5f, 0.0f, 1.5f, 0.0f, 0.5f})));
  EXPECT_TRUE(at::equal(points[1], clean[1] - 0.5)) << "a graph with negative weights is of another kind";
  const auto non_negative = [&](const Threat& threat) { return ThreatModel::make(threat, schema, 0.5).non_negative; };
  EXPECT_TRUE(non_negative({}));
  EXPECT_FALSE(non_negative({.negative_weights = true}));
  schema.range = std::pair(-1.0, 1.0);
  EXPECT_FALSE(non_negative({})) << "the data has negative weights";
  EXPECT_FALSE(threat(Norm::kL2, 1).non_negative) << "vectors";
  schema = Schema::of(Layout::vector(6));
  EXPECT_ERROR(non_negative({.negative_weights = true}), kUsage, "negative weights: the samples are no graphs");
}

// Where the rounding is decided is shown in valid_test.cpp.
TEST(Threat, ValidRowsComeFromTheSchema) {
  Schema schema = Schema::of(Layout::vector(4));
  schema.features = {{.name = "red"}, {.name = "green"}, {.name = "age", .step = 0.25}, {.name = "income"}};
  schema.groups = {{.name = "color", .columns = {0, 1}}};
  const ThreatModel model = ThreatModel::make({.epsilons = {1.6}, .valid = true}, schema);
  const at::Tensor clean = torch::tensor({{1.0f, 0.0f, 0.5f, 0.3f}});
  const at::Tensor between = model.project(torch::tensor({{0.2f, 0.9f, 0.6f, 7.0f}}), clean);
  EXPECT_LE(between[0][3].item<double>(), 1) << "walks stay in the ranges";
  EXPECT_GT(between[0][2].item<double>(), 0.5) << "and off the grid";
  const at::Tensor row = model.admit(between, clean);
  EXPECT_TRUE(at::equal(row.slice(1, 0, 3), torch::tensor({{0.0f, 1.0f, 0.5f}})));
  EXPECT_TRUE(at::equal(model.admit(row, clean), row));
  EXPECT_EQ(to_json(model)["valid"], true);

  EXPECT_TRUE(at::equal(threat(Norm::kL2, 1).admit(between, clean), between)) << "not asked for";
  EXPECT_ERROR(ThreatModel::make({.epsilons = {1}, .valid = true}, Schema::of(Layout::vector(4))), kUsage,
               "valid rows need a schema with features");
  EXPECT_ERROR(ThreatModel::make({.epsilons = {1}, .box = std::pair(0.1, 1.0), .valid = true}, schema), kUsage,
               "box 0.1,1: valid rows have 0 and 1 in their one-hot groups; the box must hold both");
}

TEST(Threat, ToleranceIsANumberAboveZero) {
  const auto with = [](double tolerance) {
    return ThreatModel::make({.epsilons = {1}, .tolerance = tolerance}, Schema::of(Layout::vector(6)));
  };
  EXPECT_EQ(to_json(with(0.05))["tolerance"], 0.05);
  EXPECT_ERROR(with(0), kUsage, "tolerance is 0; it must be a finite number above 0");
  EXPECT_ERROR(with(NAN), kUsage, "tolerance is nan");
}

TEST(Threat, IsWrittenAsJson) {
  EXPECT_EQ(to_json(threat(Norm::kL2, 0.5)).dump(), R"({"norm":"l2","epsilon":0.5,"box":null})");
  EXPECT_EQ(to_json(threat(Norm::kLinf, 0.5, {{0, 1}})).dump(), R"({"norm":"linf","epsilon":0.5,"box":[0.0,1.0]})");
}

}  // namespace
}  // namespace holdfast::attack
