// The nearest point of a polyhedron: optimality conditions, and what is said to be out of reach.
#include "../../src/attack/exact/nearest_point.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "holdfast/core/rng.h"

namespace holdfast::attack::exact {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

Eigen::VectorXd random_vector(RandomStream& stream, Eigen::Index size) {
  Eigen::VectorXd vector(size);
  for (double& value : vector) value = stream.normal();
  return vector;
}

struct Polyhedron {
  std::vector<HalfSpace> spaces;
  std::vector<const HalfSpace*> pointers() const {
    std::vector<const HalfSpace*> all;
    for (const HalfSpace& space : spaces) all.push_back(&space);
    return all;
  }
};

// Projections on the half-spaces and the box in turn, with Dykstra's corrections: slow, and without an active set.
Eigen::VectorXd dykstra(const Eigen::VectorXd& x, const Polyhedron& polyhedron, double low, double high) {
  Eigen::VectorXd point = x;
  std::vector<Eigen::VectorXd> corrections(polyhedron.spaces.size() + 1, Eigen::VectorXd::Zero(x.size()));
  for (int sweep = 0; sweep < 20000; ++sweep) {
    for (std::size_t c = 0; c < corrections.size(); ++c) {
      const Eigen::VectorXd from = point + corrections[c];
      if (c == polyhedron.spaces.size()) {
        point = from.cwiseMax(low).cwiseMin(high);
      } else {
        const HalfSpace& space = polyhedron.spaces[c];
        const double excess = space.normal.dot(from) - space.limit;
        point = from - std::max(0.0, excess) / space.normal.squaredNorm() * space.normal;
      }
      corrections[c] = from - point;
    }
  }
  return point;
}

TEST(NearestPoint, IsThatOfProjectionsInTurn) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomStream stream(seed, "polyhedron");
    const Eigen::Index n = 2 + static_cast<Eigen::Index>(stream.below(6));
    const Eigen::VectorXd inside = random_vector(stream, n);
    Polyhedron polyhedron;
    for (std::uint64_t c = 0; c < 1 + stream.below(8); ++c) {
      const Eigen::VectorXd normal = random_vector(stream, n);
      polyhedron.spaces.push_back(half_space(normal, normal.dot(inside) + stream.uniform()));
    }
    const Eigen::VectorXd x = 3 * random_vector(stream, n);
    const double side = 4 + inside.cwiseAbs().maxCoeff() + x.cwiseAbs().maxCoeff() * stream.uniform();
    const Eigen::VectorXd origin = x.cwiseMax(-side).cwiseMin(side);
    const NearestPoint geometry(origin, Eigen::VectorXd::Constant(n, -side), Eigen::VectorXd::Constant(n, side));
    Nearest nearest = geometry.start();
    ASSERT_TRUE(geometry.move(nearest, polyhedron.pointers(), 1e6));
    const Eigen::VectorXd expected = dykstra(origin, polyhedron, -side, side);
    EXPECT_LE((nearest.point - expected).norm(), 1e-5) << "seed " << seed;
    const double distance = (nearest.point - origin).norm();
    if (distance == 0) continue;
    Nearest again = geometry.start();
    EXPECT_FALSE(geometry.move(again, polyhedron.pointers(), 0.999 * distance));
    again = geometry.start();
    EXPECT_TRUE(geometry.move(again, polyhedron.pointers(), 1.001 * distance));
  }
}

TEST(NearestPoint, GoesOnFromTheSolutionOfFewerHalfSpaces) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomStream stream(seed, "one after the other");
    const Eigen::Index n = 6;
    Polyhedron polyhedron;
    for (int c = 0; c < 7; ++c) polyhedron.spaces.push_back(half_space(random_vector(stream, n), stream.normal()));
    const NearestPoint geometry(random_vector(stream, n), Eigen::VectorXd::Constant(n, -kNone),
                                Eigen::VectorXd::Constant(n, kNone));
    Nearest at_once = geometry.start(), step_by_step = geometry.start();
    const bool exists = geometry.move(at_once, polyhedron.pointers(), 1e4);
    bool found = true;
    for (std::size_t c = 1; c <= polyhedron.spaces.size() && found; ++c) {
      std::vector<const HalfSpace*> some = polyhedron.pointers();
      some.resize(c);
      found = geometry.move(step_by_step, some, 1e4);
    }
    EXPECT_EQ(found, exists) << "seed " << seed;
    if (exists) {
      EXPECT_LE((at_once.point - step_by_step.point).norm(), 1e-7) << "seed " << seed;
    }
  }
}

TEST(NearestPoint, KnowsThatOppositeHalfSpacesDoNotMeet) {
  const Eigen::VectorXd normal = Eigen::Vector3d(1, 2, -1), x = Eigen::Vector3d(0.3, 0, 0);
  const NearestPoint geometry(x, Eigen::VectorXd::Constant(3, -kNone), Eigen::VectorXd::Constant(3, kNone));
  const HalfSpace below = half_space(normal, -1), above = half_space(-normal, 0.9), touching = half_space(-normal, 1);
  Nearest nearest = geometry.start();
  EXPECT_FALSE(geometry.move(nearest, {&below, &above}, 100));
  nearest = geometry.start();
  EXPECT_TRUE(geometry.move(nearest, {&below, &touching}, 100));
  EXPECT_NEAR(normal.dot(nearest.point), -1, 1e-9);
  const HalfSpace nothing = half_space(Eigen::Vector3d::Zero(), -1);
  nearest = geometry.start();
  EXPECT_FALSE(geometry.move(nearest, {&nothing}, 100)) << "0 <= -1";
}

}  // namespace
}  // namespace holdfast::attack::exact
