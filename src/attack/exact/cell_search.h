// Branch and bound over the activation cells of a piecewise-linear network: the least value that a metric of the top k, or of the
// order of all features, can take at a point of the ball whose prediction is unchanged. Free of torch.
//
// A cell is a set of inputs with one on/off pattern of the units. Inside it the gradient of a logit, and with two classes the
// direction of the probability's, is constant: so is the ranking of its features. A node of the search is a part of the ball in
// which some units are decided. Each of these is a half-space, so the part is a polyhedron in the ball.
//     reach       the nearest point p of the polyhedron to x; none, or beyond the ball: the part is empty. All points of the part
//                 lie within sqrt(radius^2 - ||p - x||^2) of p, which decides further units
//     class       undecided units bound the margin from above by a linear function of x: one more half-space for each other class
//     bound       intervals of the undecided units' slopes say which pairs of features may change places, and these how low the
//                 metric can be (pair_bounds.h)
//     branch      on the unit that leaves most of the open pairs undecided; the node with the lowest bound is next
// Layers are decided one after the other: once all units of one are, the next one's inputs are linear on the part. Later ones are
// bounded by intervals.
//
// What is proven is proven for the network as float32 runs it. Half-spaces are wider by what rounding can do to a pre-activation,
// and a gap counts as decided when it is above what rounding can do to the map: g_m times the sum of the magnitudes of the
// products in it, g_m = m u / (1 - m u), m the longest chain of operations. The points are found by the caller's judge on the
// model itself: a cell that no such point shows keeps its bound.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cell_problem.h"

namespace holdfast::attack::exact {

struct CellLimits {
  std::int64_t nodes = 200000;
  double seconds = 0;  // 0: none. Results depend on the machine where there is one
};

struct CellAnswer {
  double proven = 1;       // no point has a lower value
  double value = 1;        // the lowest that the judge confirmed
  std::int64_t nodes = 0;  // parts that were looked at
};

// What the search asks its caller. Values are such that lower is worse: of the order Kendall's tau-b, of the top set anything
// that is at least (features of it that stay) / k.
struct CellJudge {
  std::function<double(std::span<const double> map)> value;     // of a map of magnitudes
  std::function<double(const Eigen::VectorXd& point)> confirm;  // at a point, on the model itself; NaN where it does not count
};

// `known`: a value that was confirmed before. Deterministic, but for limits.seconds.
CellAnswer search_cells(const Chain& chain, const CellProblem& problem, const CellLimits& limits, const CellJudge& judge,
                        double known);

}  // namespace holdfast::attack::exact
