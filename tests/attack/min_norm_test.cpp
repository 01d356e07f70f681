#include "../../src/attack/min_norm.h"

#include <cmath>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast::attack {
namespace {

using Vectors = std::vector<std::vector<double>>;

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Weights for the vectors, and the combination they make.
std::vector<double> shortest(const Vectors& vectors, std::vector<double>& weights) {
  std::vector<double> products;
  for (const auto& a : vectors) {
    for (const auto& b : vectors) products.push_back(product(a, b));
  }
  weights = min_norm_weights(products, vectors.size());
  std::vector<double> point(vectors[0].size(), 0.0);
  for (std::size_t q = 0; q < vectors.size(); ++q) {
    for (std::size_t i = 0; i < point.size(); ++i) point[i] += weights[q] * vectors[q][i];
  }
  return point;
}

TEST(MinNorm, KnownCases) {
  std::vector<double> weights;
  EXPECT_EQ(shortest({{3, 4}}, weights), (std::vector<double>{3, 4}));
  shortest({{2, 0}, {0, 2}}, weights);
  EXPECT_NEAR(weights[0], 0.5, 1e-12);
  shortest({{1, 0}, {5, 1}}, weights);
  EXPECT_NEAR(weights[0], 1, 1e-12) << "the first is nearer than anything between them";
  const std::vector<double> none = shortest({{1, 0}, {-1, 0}}, weights);
  EXPECT_NEAR(none[0], 0, 1e-12) << "they contradict each other";
  shortest({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, weights);
  for (const double weight : weights) EXPECT_NEAR(weight, 1.0 / 3, 1e-12);
  shortest({{0, 0}, {1, 1}, {2, 0}}, weights);
  EXPECT_NEAR(weights[0], 1, 1e-12) << "zero itself";
}

// The shortest point p of a hull is the one with <g, p> >= <p, p> for every vector g, with equality where its weight is not 0.
TEST(MinNorm, HoldsTheConditionsOfTheShortestPoint) {
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    RandomStream stream(trial, "min norm");
    const std::size_t m = 2 + stream.below(7), n = 1 + stream.below(6);
    Vectors vectors(m, std::vector<double>(n));
    const double shift = stream.uniform(0, 2);
    for (auto& vector : vectors) {
      for (double& element : vector) element = stream.normal() + shift;
    }
    if (trial % 5 == 0) vectors[1] = vectors[0];  // twice the same
    std::vector<double> weights;
    const std::vector<double> point = shortest(vectors, weights);
    double sum = 0;
    for (const double weight : weights) {
      EXPECT_GE(weight, 0);
      sum += weight;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    const double length = product(point, point);
    for (std::size_t q = 0; q < m; ++q) {
      EXPECT_GE(product(vectors[q], point), length - 1e-7) << "trial " << trial;
      if (weights[q] > 1e-6) {
        EXPECT_NEAR(product(vectors[q], point), length, 1e-6) << "trial " << trial;
      }
    }
  }
}

TEST(MinNorm, ZeroGradientsAreNoTrouble) {
  const std::vector<double> weights = min_norm_weights(std::vector<double>(9, 0.0), 3);
  EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 1e-12);
}

}  // namespace
}  // namespace holdfast::attack
