#include "part.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace holdfast::attack::exact {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
// Of the radius squared: rounding of the nearest point.
constexpr double kBallSlack = 1e-9;

Range times(const Range& x, const MatrixXd& weight) {
  const VectorXd middle = weight * ((x.low + x.high) / 2), reach = weight.cwiseAbs() * ((x.high - x.low) / 2);
  return {middle - reach, middle + reach};
}
Range times(const Range& x, const Range& factor) {
  const VectorXd a = x.low.cwiseProduct(factor.low), b = x.low.cwiseProduct(factor.high), c = x.high.cwiseProduct(factor.low),
                 d = x.high.cwiseProduct(factor.high);
  return {a.cwiseMin(b).cwiseMin(c.cwiseMin(d)), a.cwiseMax(b).cwiseMax(c.cwiseMax(d))};
}

}  // namespace

std::vector<Pattern> Front::patterns_before() const {
  std::vector<Pattern> patterns;
  for (const Front* front = this; front->previous; front = front->previous.get()) patterns.push_back(front->before);
  std::reverse(patterns.begin(), patterns.end());
  return patterns;
}

PartGeometry::PartGeometry(const Chain& chain, const CellProblem& problem, const Rounding& rounding)
    : chain_(chain),
      problem_(problem),
      rounding_(rounding),
      boxed_(problem.low.maxCoeff() > -kEndless || problem.high.minCoeff() < kEndless) {}

std::shared_ptr<const Front> PartGeometry::make_front(std::shared_ptr<const Front> previous, const Pattern& before) const {
  auto front = std::make_shared<Front>();
  front->layer = previous ? previous->layer + 1 : 0;
  const Chain::Layer& layer = chain_.layers[front->layer];
  front->rows = layer.weight;
  front->offset = layer.bias;
  if (previous) {
    const VectorXd slopes = slopes_of(previous->layer, before);
    front->rows = layer.weight * (slopes.asDiagonal() * previous->rows);
    front->offset += layer.weight * slopes.cwiseProduct(previous->offset);
  }
  front->ranked = projected(front->rows);
  front->before = before;
  front->previous = std::move(previous);
  const Index units = front->rows.rows();
  front->sizes.resize(units);
  for (Index h = 0; h < units; ++h) {
    const double slack = rounding_.of_layer(front->layer)[h];
    front->on.push_back(free_half_space(-front->rows.row(h).transpose(), front->offset[h] + slack));
    front->off.push_back(free_half_space(front->rows.row(h).transpose(), slack - front->offset[h]));
    front->sizes[h] = front->on.back().size;
  }
  return front;
}

VectorXd PartGeometry::slopes_of(std::size_t layer, const Pattern& pattern) const {
  VectorXd slopes(static_cast<Index>(pattern.size()));
  for (Index h = 0; h < slopes.size(); ++h) slopes[h] = pattern[static_cast<std::size_t>(h)] > 0 ? 1 : chain_.layers[layer].slope;
  return slopes;
}

MatrixXd PartGeometry::projected(MatrixXd rows) const {
  for (const auto& group : problem_.groups) {
    VectorXd mean = VectorXd::Zero(rows.rows());
    for (const std::int64_t i : group) mean += rows.col(i) / static_cast<double>(group.size());
    for (const std::int64_t i : group) rows.col(i) -= mean;
  }
  return rows;
}

// row . x <= limit, as a condition on the free elements alone.
HalfSpace PartGeometry::free_half_space(VectorXd row, double limit) const {
  for (Index i = 0; i < row.size(); ++i) {
    if (problem_.is_free[static_cast<std::size_t>(i)]) continue;
    limit -= row[i] * problem_.x[i];
    row[i] = 0;
  }
  return half_space(row, limit);
}

double PartGeometry::ball_around(const VectorXd& point) const {
  const double square = problem_.radius * problem_.radius;
  return std::sqrt(std::max(0.0, square - (point - problem_.x).squaredNorm()) + kBallSlack * square);
}

Range PartGeometry::ranges(const Front& front, const VectorXd& point) const {
  const VectorXd middle = front.rows * point + front.offset, reach = ball_around(point) * front.sizes;
  Range range{middle - reach, middle + reach};
  if (!boxed_) return range;
  for (Index h = 0; h < middle.size(); ++h) {
    double up = 0, down = 0;
    for (Index i = 0; i < point.size(); ++i) {
      if (!problem_.is_free[static_cast<std::size_t>(i)] || front.rows(h, i) == 0) continue;
      const double a = front.rows(h, i) * (problem_.low[i] - point[i]), b = front.rows(h, i) * (problem_.high[i] - point[i]);
      up += std::max(a, b);
      down += std::min(a, b);
    }
    range.low[h] = std::max(range.low[h], middle[h] + down);
    range.high[h] = std::min(range.high[h], middle[h] + up);
  }
  return range;
}

HalfSpace PartGeometry::exact_class(const Front& front, Index other) const {
  const VectorXd row = front.rows.row(other) - front.rows.row(problem_.predicted);
  return free_half_space(row, front.offset[problem_.predicted] - front.offset[other] - least_margin());
}

// A linear function that is nowhere in the part below the margin over another class, from the last hidden layer: an open
// unit's value lies below its chord and above either of its lines.
HalfSpace PartGeometry::class_above(const Front& front, const Pattern& state, const VectorXd& point, Index other) const {
  const Chain::Layer& out = chain_.layers.back();
  const double slope = chain_.layers[front.layer].slope;
  const Range range = ranges(front, point);
  VectorXd row = VectorXd::Zero(problem_.x.size());
  double offset = out.bias[problem_.predicted] - out.bias[other];
  for (Index h = 0; h < front.rows.rows(); ++h) {
    const double weight = out.weight(problem_.predicted, h) - out.weight(other, h);
    const std::int8_t own = state[static_cast<std::size_t>(h)];
    double line = own > 0 ? 1 : slope, raised = 0;
    if (own == 0) {
      const double low = std::min(range.low[h], 0.0), high = std::max(range.high[h], 0.0);
      const bool chord = (weight > 0) == (slope <= 1) && high > low;
      if (chord) {
        line = (high - slope * low) / (high - low);
        raised = high - line * high;
      } else {
        line = high > -low ? 1 : slope;
      }
    }
    row += weight * line * front.rows.row(h).transpose();
    offset += weight * (line * front.offset[h] + raised);
  }
  return free_half_space(-row, offset - least_margin());
}

Range PartGeometry::weights_of(const Front& front, const Pattern& state, const VectorXd& point) const {
  const std::size_t first = front.layer;
  std::vector<Range> slopes{Range{}};
  slopes[0].low = slopes[0].high = slopes_of(first, state);
  const double own = chain_.layers[first].slope;
  for (Index h = 0; h < slopes[0].low.size(); ++h) {
    if (state[static_cast<std::size_t>(h)] != 0) continue;
    slopes[0].low[h] = std::min(own, 1.0);
    slopes[0].high[h] = std::max(own, 1.0);
  }
  if (first + 2 < chain_.layers.size()) add_later_slopes(first, ranges(front, point), slopes);
  Range weights{problem_.explained, problem_.explained};
  for (std::size_t i = chain_.layers.size() - 1; i > first; --i) {
    weights = times(weights, chain_.layers[i].weight.transpose());
    weights = times(weights, slopes[i - 1 - first]);
  }
  return weights;
}

void PartGeometry::add_later_slopes(std::size_t first, Range range, std::vector<Range>& slopes) const {
  for (std::size_t i = first; i + 2 < chain_.layers.size(); ++i) {
    const double slope = chain_.layers[i].slope;
    const auto activate = [&](const VectorXd& z) { return VectorXd(z.cwiseMax(0) + slope * z.cwiseMin(0)); };
    if (slope < 0) {  // not monotone: anything between the lines
      const VectorXd most = range.low.cwiseAbs().cwiseMax(range.high.cwiseAbs()) * std::max(1.0, -slope);
      range = {-most, most};
    } else {
      range = {activate(range.low), activate(range.high)};
    }
    const Chain::Layer& next = chain_.layers[i + 1];
    range = times(range, next.weight);
    range = {range.low + next.bias, range.high + next.bias};
    const double other = chain_.layers[i + 1].slope;
    Range own{VectorXd(range.low.size()), VectorXd(range.low.size())};
    for (Index h = 0; h < range.low.size(); ++h) {
      const bool can_be_on = range.high[h] > -rounding_.of_layer(i + 1)[h],
                 can_be_off = range.low[h] < rounding_.of_layer(i + 1)[h];
      const double a = can_be_on ? 1 : other, b = can_be_off ? other : 1;
      own.low[h] = std::min(a, b);
      own.high[h] = std::max(a, b);
    }
    slopes.push_back(std::move(own));
  }
}

std::vector<HalfSpace> PartGeometry::cell(const std::vector<Pattern>& patterns, double depth) const {
  std::vector<HalfSpace> spaces;
  MatrixXd rows = chain_.layers[0].weight;
  VectorXd offset = chain_.layers[0].bias;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    for (Index h = 0; h < rows.rows(); ++h) {
      const double sign = patterns[i][static_cast<std::size_t>(h)];
      HalfSpace space = free_half_space(-sign * rows.row(h).transpose(), sign * offset[h] - 2 * rounding_.of_layer(i)[h]);
      if (space.size == 0) continue;  // nothing moves it
      space.limit -= depth * space.size;
      spaces.push_back(std::move(space));
    }
    const VectorXd slopes = slopes_of(i, patterns[i]);
    const Chain::Layer& next = chain_.layers[i + 1];
    offset = next.weight * slopes.cwiseProduct(offset) + next.bias;
    rows = next.weight * (slopes.asDiagonal() * rows);
  }
  for (Index other = 0; other < rows.rows(); ++other) {
    if (other == problem_.predicted) continue;
    HalfSpace space =
        free_half_space((rows.row(other) - rows.row(problem_.predicted)).transpose(),
                        offset[problem_.predicted] - offset[other] - 3 * problem_.margin - 2 * rounding_.of_margin());
    space.limit -= depth * space.size;
    spaces.push_back(std::move(space));
  }
  return spaces;
}

}  // namespace holdfast::attack::exact
