#include "nearest_point.h"

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <Eigen/Cholesky>

namespace holdfast::attack::exact {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Of a normal's size: what counts as violated, as out of reach, and as dependent on the active constraints.
constexpr double kViolated = 1e-11, kReach = 1e-9, kDependent = 1e-12;
// A degenerate corner may be met this often; then the point so far is taken, which excludes nothing.
constexpr int kMostTurns = 300;

}  // namespace

HalfSpace half_space(const Eigen::VectorXd& normal, double limit) {
  return {normal, limit, normal.norm()};
}

Eigen::VectorXd NearestPoint::normal(int constraint, const std::vector<const HalfSpace*>& spaces) const {
  if (constraint >= 0) return spaces[static_cast<std::size_t>(constraint)]->normal;
  Eigen::VectorXd unit = Eigen::VectorXd::Zero(origin_.size());
  const int face = -1 - constraint;
  unit[face / 2] = face % 2 == 0 ? 1 : -1;
  return unit;
}

double NearestPoint::excess(int constraint, const Eigen::VectorXd& point, const std::vector<const HalfSpace*>& spaces) const {
  if (constraint >= 0) {
    const HalfSpace& space = *spaces[static_cast<std::size_t>(constraint)];
    return space.normal.dot(point) - space.limit;
  }
  const int face = -1 - constraint, i = face / 2;
  return face % 2 == 0 ? point[i] - high_[i] : low_[i] - point[i];
}

NearestPoint::Violated NearestPoint::most_violated(const Eigen::VectorXd& point,
                                                   const std::vector<const HalfSpace*>& spaces) const {
  Violated most;
  const auto look = [&](int constraint, double amount) {
    if (amount > most.amount) most = {constraint, amount};
  };
  for (std::size_t c = 0; c < spaces.size(); ++c) {
    const double amount = spaces[c]->normal.dot(point) - spaces[c]->limit;
    if (spaces[c]->size > 0) {
      look(static_cast<int>(c), amount / spaces[c]->size);
    } else if (amount > 0) {
      look(static_cast<int>(c), kInfinite);  // 0 . x <= limit < 0
    }
  }
  for (int i = 0; i < static_cast<int>(point.size()); ++i) {
    look(-1 - 2 * i, point[i] - high_[i]);
    look(-2 - 2 * i, low_[i] - point[i]);
  }
  return most;
}

// Raises the multiplier of a violated constraint until it holds; constraints whose multipliers fall to 0 on the way leave.
// Where its normal is a negative combination of the active ones, but for `direction`, and none can leave, no point within the
// ball makes it hold unless it is violated by less than `direction` can change in the ball.
NearestPoint::Added NearestPoint::add(Nearest& nearest, int constraint, const std::vector<const HalfSpace*>& spaces,
                                      double radius) const {
  const Eigen::VectorXd own = normal(constraint, spaces);
  double multiplier = 0;
  while (true) {
    const auto count = static_cast<Eigen::Index>(nearest.active.size());
    Eigen::MatrixXd held(own.size(), count);
    for (Eigen::Index c = 0; c < count; ++c) held.col(c) = normal(nearest.active[static_cast<std::size_t>(c)], spaces);
    Eigen::VectorXd falls(count);
    Eigen::VectorXd direction = own;
    if (count > 0) {
      falls = (held.transpose() * held).ldlt().solve(held.transpose() * own);
      direction -= held * falls;
    }
    double step = kInfinite;
    Eigen::Index leaves = -1;
    for (Eigen::Index c = 0; c < count; ++c) {
      if (falls[c] <= 1e-14) continue;
      const double most = nearest.multipliers[static_cast<std::size_t>(c)] / falls[c];
      if (most < step) std::tie(step, leaves) = std::pair(most, c);
    }
    const double square = direction.squaredNorm();
    const bool moves = square > kDependent * own.squaredNorm();
    const double beyond = excess(constraint, nearest.point, spaces), whole = moves ? beyond / square : kInfinite;
    const bool is_whole = whole <= step;
    step = std::min(step, whole);
    if (step == kInfinite) return beyond > 2 * radius * std::sqrt(square) ? Added::kImpossible : Added::kUndecided;
    if (moves) nearest.point -= step * direction;
    for (Eigen::Index c = 0; c < count; ++c) nearest.multipliers[static_cast<std::size_t>(c)] -= step * falls[c];
    multiplier += step;
    if (is_whole) break;
    nearest.active.erase(nearest.active.begin() + leaves);
    nearest.multipliers.erase(nearest.multipliers.begin() + leaves);
  }
  nearest.active.push_back(constraint);
  nearest.multipliers.push_back(multiplier);
  return Added::kHolds;
}

bool NearestPoint::move(Nearest& nearest, const std::vector<const HalfSpace*>& spaces, double radius) const {
  const double scale = 1 + origin_.cwiseAbs().maxCoeff();
  for (int turn = 0; turn < kMostTurns; ++turn) {
    if ((nearest.point - origin_).norm() > radius * (1 + kReach)) return false;
    const Violated worst = most_violated(nearest.point, spaces);
    if (worst.amount <= kViolated * scale) return true;
    if (worst.amount == kInfinite) return false;
    Nearest next = nearest;
    const Added added = add(next, worst.constraint, spaces, radius);
    if (added != Added::kHolds) return added == Added::kUndecided;
    nearest = std::move(next);
  }
  return true;
}

}  // namespace holdfast::attack::exact
