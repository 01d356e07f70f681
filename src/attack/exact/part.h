// A part of the ball: the points where some units of the network are decided to be on or off. Layers are decided one after the
// other: once all units of one are, the next one's pre-activations are linear on the part. Free of torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <Eigen/Core>

#include "cell_problem.h"
#include "nearest_point.h"
#include "rounding.h"

namespace holdfast::attack::exact {

using Pattern = std::vector<std::int8_t>;  // of a layer's units: 1 on, -1 off, 0 open

// The first layer that is not decided, as a function of the input on the part where all layers before it are.
struct Front {
  std::size_t layer = 0;
  Eigen::MatrixXd rows;    // [units, n]: pre-activations are rows x + offset
  Eigen::VectorXd offset;  // [units]
  Eigen::MatrixXd ranked;  // rows, projected where gradients are
  Eigen::VectorXd sizes;   // of the rows' free elements
  Pattern before;          // that decided the layer before
  std::shared_ptr<const Front> previous;
  std::vector<HalfSpace> on, off;  // where a unit is, wider by rounding

  const HalfSpace& side(Eigen::Index unit, int state) const { return (state > 0 ? on : off)[static_cast<std::size_t>(unit)]; }
  std::vector<Pattern> patterns_before() const;
};

struct Range {
  Eigen::VectorXd low, high;
};

// Half-spaces and ranges of parts.
class PartGeometry {
 public:
  PartGeometry(const Chain& chain, const CellProblem& problem, const Rounding& rounding);

  bool is_last(const Front& front) const { return front.layer + 1 == chain_.layers.size(); }
  // The front behind a decided one; the first layer's for none.
  std::shared_ptr<const Front> make_front(std::shared_ptr<const Front> previous, const Pattern& before) const;
  // 1 for units that are on, else the activation's slope.
  Eigen::VectorXd slopes_of(std::size_t layer, const Pattern& pattern) const;

  // Pre-activations of the front at all points of the ball that are no further from x than `point` allows: `point` is the nearest
  // one of the part.
  Range ranges(const Front& front, const Eigen::VectorXd& point) const;
  // Bounds of the units' weights a_h in the ranked gradient G = sum_h a_h rows_h.
  Range weights_of(const Front& front, const Pattern& state, const Eigen::VectorXd& point) const;

  // Where the predicted class may be above another one, if this is the last layer and if it is the one before it. In the second
  // case an open unit's value lies below its chord and above either of its lines.
  HalfSpace exact_class(const Front& front, Eigen::Index other) const;
  HalfSpace class_above(const Front& front, const Pattern& state, const Eigen::VectorXd& point, Eigen::Index other) const;
  // The cell of one pattern for each hidden layer, every boundary moved inwards by `depth`.
  std::vector<HalfSpace> cell(const std::vector<Pattern>& patterns, double depth) const;

 private:
  double ball_around(const Eigen::VectorXd& point) const;
  double least_margin() const { return problem_.margin - rounding_.of_margin(); }
  Eigen::MatrixXd projected(Eigen::MatrixXd rows) const;
  HalfSpace free_half_space(Eigen::VectorXd row, double limit) const;
  void add_later_slopes(std::size_t first, Range range, std::vector<Range>& slopes) const;

  const Chain& chain_;
  const CellProblem& problem_;
  const Rounding& rounding_;
  const bool boxed_;
};

}  // namespace holdfast::attack::exact
