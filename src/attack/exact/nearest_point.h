// The point of a polyhedron that is nearest to a given one:
//     minimise ||x - origin||^2   subject to   normal_c . x <= limit_c   for all half-spaces,   low <= x <= high
// by the dual active-set method of Goldfarb and Idnani ("A numerically stable dual method for solving strictly convex quadratic
// programs", Mathematical Programming 27, 1983): constraints that are violated join one after the other, so the distance only
// grows, and a solution of some half-spaces is a start for more of them. Free of torch.
#pragma once

#include <vector>

#include <Eigen/Core>

namespace holdfast::attack::exact {

struct HalfSpace {
  Eigen::VectorXd normal;
  double limit = 0;  // normal . x <= limit
  double size = 0;   // ||normal||
};
HalfSpace half_space(const Eigen::VectorXd& normal, double limit);

// A solution: the point, the constraints that hold it there and their multipliers. Constraint c is a half-space; -1 - 2i and
// -2 - 2i are the upper and the lower bound of element i.
struct Nearest {
  Eigen::VectorXd point;
  std::vector<int> active = {};
  std::vector<double> multipliers = {};
};

class NearestPoint {
 public:
  // Infinite bounds are none. The origin lies between them.
  NearestPoint(Eigen::VectorXd origin, Eigen::VectorXd low, Eigen::VectorXd high)
      : origin_(std::move(origin)), low_(std::move(low)), high_(std::move(high)) {}

  Nearest start() const { return {.point = origin_}; }
  // Moves `nearest`, the solution for some of the half-spaces, to that for all of them. False: there is no such point within
  // `radius` of the origin, which is finite. Where rounding leaves that undecided the result is true, and the point may lie
  // outside by as much. In any case every point x of the polyhedron has
  //     ||x - nearest.point||^2 <= ||x - origin||^2 - ||nearest.point - origin||^2
  bool move(Nearest& nearest, const std::vector<const HalfSpace*>& spaces, double radius) const;

  const Eigen::VectorXd& origin() const { return origin_; }
  const Eigen::VectorXd& low() const { return low_; }
  const Eigen::VectorXd& high() const { return high_; }

 private:
  struct Violated {
    int constraint = 0;
    double amount = 0;  // of its normal's size
  };
  Violated most_violated(const Eigen::VectorXd& point, const std::vector<const HalfSpace*>& spaces) const;
  Eigen::VectorXd normal(int constraint, const std::vector<const HalfSpace*>& spaces) const;
  // How far the point is beyond the constraint, in units of its normal.
  double excess(int constraint, const Eigen::VectorXd& point, const std::vector<const HalfSpace*>& spaces) const;
  enum class Added { kHolds, kImpossible, kUndecided };
  Added add(Nearest& nearest, int constraint, const std::vector<const HalfSpace*>& spaces, double radius) const;

  Eigen::VectorXd origin_, low_, high_;
};

}  // namespace holdfast::attack::exact
