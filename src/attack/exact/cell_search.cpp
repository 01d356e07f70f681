#include "cell_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>

#include "holdfast/core/clock.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/metric/swaps.h"
#include "nearest_point.h"

namespace holdfast::attack::exact {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kEndless = std::numeric_limits<double>::infinity();
// How deep inside its cell a point should lie, of the radius, the deepest tried first; and how much of the ball it may use.
constexpr double kDepths[] = {1e-2, 1e-3, 1e-4, 1e-5};
constexpr double kInside = 1 - 1e-6;
// Of the radius squared: rounding of the nearest point.
constexpr double kBallSlack = 1e-9;
constexpr std::int64_t kNodesBetweenLooks = 256;  // at the clock

double rounding_factor(double chain, double unit) {
  return chain * unit / (1 - chain * unit);
}

using Pattern = std::vector<std::int8_t>;  // of a layer's units: 1 on, -1 off, 0 open

// The first layer that is not decided, as a function of the input on the part where all layers before it are.
struct Front {
  std::size_t layer = 0;
  MatrixXd rows;    // [units, n]: pre-activations are rows x + offset
  VectorXd offset;  // [units]
  MatrixXd ranked;  // rows, projected where gradients are
  VectorXd sizes;   // of the rows' free elements
  Pattern before;   // that decided the layer before
  std::shared_ptr<const Front> previous;
  std::vector<HalfSpace> on, off;  // where a unit is, wider by rounding

  const HalfSpace& side(Index unit, int state) const { return (state > 0 ? on : off)[static_cast<std::size_t>(unit)]; }
};

struct Pair {
  std::int32_t above, below;  // positions among the top features and among the others
};

struct Node {
  std::shared_ptr<const Front> front;
  Pattern state;
  std::vector<const HalfSpace*> cuts;
  Nearest nearest;
  std::vector<Pair> open;
  std::int64_t kept = 0;  // at least so many of the top features stay
  Index branch = -1;
  double side = 0;  // the branch unit's pre-activation at the nearest point
};

struct Range {
  VectorXd low, high;
};

class Search {
 public:
  Search(const Chain& chain, const CellProblem& problem, const CellLimits& limits, const CellJudge& judge, double known)
      : chain_(chain),
        problem_(problem),
        limits_(limits),
        judge_(judge),
        value_(known),
        geometry_(problem.x, problem.low, problem.high),
        k_(static_cast<std::int64_t>(problem.top.size())),
        boxed_(problem.low.maxCoeff() > -kEndless || problem.high.minCoeff() < kEndless),
        open_by_kept_(problem.top.size() + 1) {
    std::vector<char> is_top(static_cast<std::size_t>(problem.x.size()));
    for (const std::int64_t i : problem.top) is_top[static_cast<std::size_t>(i)] = 1;
    for (Index i = 0; i < problem.x.size(); ++i) {
      if (!is_top[static_cast<std::size_t>(i)]) others_.push_back(i);
    }
    bound_rounding();
  }

  CellAnswer run() {
    add_root();
    while (const auto kept = lowest()) {
      if (share(*kept) >= value_ || is_over()) break;
      std::vector<Node>& nodes = open_by_kept_[*kept];
      const Node node = std::move(nodes.back());
      nodes.pop_back();
      split(node);
    }
    double proven = std::min(value_, unshown_);
    if (const auto kept = lowest()) proven = std::min(proven, share(*kept));
    return {.proven = proven, .value = value_, .nodes = nodes_};
  }

 private:
  double share(std::size_t kept) const { return static_cast<double>(kept) / static_cast<double>(k_); }
  bool is_last(const Front& front) const { return front.layer + 1 == chain_.layers.size(); }

  std::optional<std::size_t> lowest() const {
    for (std::size_t kept = 0; kept < open_by_kept_.size(); ++kept) {
      if (!open_by_kept_[kept].empty()) return kept;
    }
    return std::nullopt;
  }

  bool is_over() {
    if (nodes_ >= limits_.nodes) return true;
    if (nodes_ < next_look_) return false;
    next_look_ = nodes_ + kNodesBetweenLooks;
    throw_if_interrupted();
    return limits_.seconds > 0 && seconds_since(started_) > limits_.seconds;
  }

  // What float32 can do to pre-activations, to the margin and to the gradient, anywhere in the ball.
  void bound_rounding() {
    VectorXd size = problem_.x.cwiseAbs().array() + problem_.radius;
    double length = 1;
    VectorXd mistake;  // of the values behind a layer whose units are on the wrong side by rounding
    for (const Chain::Layer& layer : chain_.layers) {
      length += static_cast<double>(layer.weight.cols()) + 3;
      size = layer.weight_size * size + layer.bias_size;
      const VectorXd own = rounding_factor(length, chain_.rounding) * size;
      mistake = mistake.size() == 0 ? own : VectorXd(layer.weight.cwiseAbs() * mistake + own);
      slack_.push_back(own);
    }
    margin_slack_ = 4 * mistake.maxCoeff();
    std::size_t largest = 0;
    for (const auto& group : problem_.groups) largest = std::max(largest, group.size());
    gradient_rounding_ = rounding_factor(length + static_cast<double>(largest) + 10, chain_.rounding);
    gradient_slack_ = gradient_slack([&](std::size_t layer) {
      const double most = std::max(1.0, std::abs(chain_.layers[layer].slope));
      return VectorXd(VectorXd::Constant(chain_.layers[layer].weight.rows(), most));
    });
  }

  // What rounding can do to each feature's gradient; `slopes(layer)` bounds the slopes' magnitudes.
  template <class Slopes>
  VectorXd gradient_slack(const Slopes& slopes) const {
    VectorXd sum = problem_.explained.cwiseAbs();
    for (std::size_t i = chain_.layers.size(); i-- > 0;) {
      sum = chain_.layers[i].weight_size.transpose() * sum;
      if (i > 0) sum = sum.cwiseProduct(slopes(i - 1));
    }
    for (const auto& group : problem_.groups) {
      double mean = 0;
      for (const std::int64_t i : group) mean += sum[i] / static_cast<double>(group.size());
      for (const std::int64_t i : group) sum[i] += mean;
    }
    return gradient_rounding_ * sum;
  }

  MatrixXd projected(MatrixXd rows) const {
    for (const auto& group : problem_.groups) {
      VectorXd mean = VectorXd::Zero(rows.rows());
      for (const std::int64_t i : group) mean += rows.col(i) / static_cast<double>(group.size());
      for (const std::int64_t i : group) rows.col(i) -= mean;
    }
    return rows;
  }

  // row . x <= limit, as a condition on the free elements alone.
  HalfSpace free_half_space(VectorXd row, double limit) const {
    for (Index i = 0; i < row.size(); ++i) {
      if (problem_.is_free[static_cast<std::size_t>(i)]) continue;
      limit -= row[i] * problem_.x[i];
      row[i] = 0;
    }
    return half_space(row, limit);
  }

  std::shared_ptr<const Front> make_front(std::shared_ptr<const Front> previous, const Pattern& before) const {
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
      const double slack = slack_[front->layer][h];
      front->on.push_back(free_half_space(-front->rows.row(h).transpose(), front->offset[h] + slack));
      front->off.push_back(free_half_space(front->rows.row(h).transpose(), slack - front->offset[h]));
      front->sizes[h] = front->on.back().size;
    }
    return front;
  }

  VectorXd slopes_of(std::size_t layer, const Pattern& pattern) const {
    VectorXd slopes(static_cast<Index>(pattern.size()));
    for (Index h = 0; h < slopes.size(); ++h)
      slopes[h] = pattern[static_cast<std::size_t>(h)] > 0 ? 1 : chain_.layers[layer].slope;
    return slopes;
  }

  void add_root() {
    Node root{.front = make_front(nullptr, {}), .nearest = geometry_.start()};
    root.state.assign(static_cast<std::size_t>(root.front->rows.rows()), 0);
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(k_); ++i) {
      for (std::int32_t j = 0; j < static_cast<std::int32_t>(others_.size()); ++j) root.open.push_back({i, j});
    }
    look_at(std::move(root));
  }

  // The half that holds the nearest point is looked into first.
  void split(const Node& node) {
    const int near = node.side > 0 ? 1 : -1;
    for (const int state : {-near, near}) {
      Node child = node;
      child.state[static_cast<std::size_t>(node.branch)] = static_cast<std::int8_t>(state);
      child.cuts.push_back(&node.front->side(node.branch, state));
      look_at(std::move(child));
    }
  }

  // Keeps a node that may hold something worse than what is known; leaves are judged here.
  void look_at(Node node) {
    ++nodes_;
    VectorXd point;
    while (true) {
      if (!geometry_.move(node.nearest, node.cuts, problem_.radius)) return;
      point = node.nearest.point;
      if (!is_last(*node.front)) settle(node, point);
      if (!keep_class(node, point)) return;
      if (is_last(*node.front)) return judge_leaf(node);
      if (std::find(node.state.begin(), node.state.end(), 0) != node.state.end()) break;
      Node next = node;  // all units of the layer are decided: on to the next
      next.front = make_front(node.front, node.state);
      next.state.assign(static_cast<std::size_t>(next.front->rows.rows()), 0);
      node = std::move(next);
    }
    const Range weights = weights_of(node, point);
    bound_pairs(node, weights);
    if (share(static_cast<std::size_t>(node.kept)) >= value_) return;
    try_pattern_at(node, point);
    if (share(static_cast<std::size_t>(node.kept)) >= value_) return;
    node.side = node.front->rows.row(node.branch).dot(point) + node.front->offset[node.branch];
    open_by_kept_[static_cast<std::size_t>(node.kept)].push_back(std::move(node));
  }

  double ball_around(const VectorXd& point) const {
    const double square = problem_.radius * problem_.radius;
    return std::sqrt(std::max(0.0, square - (point - problem_.x).squaredNorm()) + kBallSlack * square);
  }

  // Pre-activations of the front over the part of the ball within ball_around(point) of `point`.
  Range ranges(const Front& front, const VectorXd& point) const {
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

  // Decides the units that no point of the part switches.
  void settle(Node& node, const VectorXd& point) const {
    const Range range = ranges(*node.front, point);
    const VectorXd& slack = slack_[node.front->layer];
    for (Index h = 0; h < range.low.size(); ++h) {
      std::int8_t& state = node.state[static_cast<std::size_t>(h)];
      if (state == 0) state = range.low[h] > slack[h] ? 1 : range.high[h] < -slack[h] ? -1 : 0;
    }
  }

  // Moves `point` to where the class may be kept, and decides what that decides; false: nowhere.
  bool keep_class(Node& node, VectorXd& point) const {
    const Front& front = *node.front;
    if (front.layer + 2 < chain_.layers.size()) return true;  // known later
    std::vector<HalfSpace> classes;
    const Index count = chain_.layers.back().weight.rows();
    for (Index other = 0; other < count; ++other) {
      if (other != problem_.predicted)
        classes.push_back(is_last(front) ? exact_class(front, other) : class_above(node, point, other));
    }
    std::vector<const HalfSpace*> spaces = node.cuts;
    for (const HalfSpace& space : classes) spaces.push_back(&space);
    Nearest nearest = node.nearest;
    if (!geometry_.move(nearest, spaces, problem_.radius)) return false;
    point = nearest.point;
    if (!is_last(front)) settle(node, point);
    return true;
  }

  double least_margin() const { return problem_.margin - margin_slack_; }

  HalfSpace exact_class(const Front& front, Index other) const {
    const VectorXd row = front.rows.row(other) - front.rows.row(problem_.predicted);
    return free_half_space(row, front.offset[problem_.predicted] - front.offset[other] - least_margin());
  }

  // A linear function that is nowhere in the part below the margin over another class, from the last hidden layer: an open
  // unit's value lies below its chord and above either of its lines.
  HalfSpace class_above(const Node& node, const VectorXd& point, Index other) const {
    const Chain::Layer& out = chain_.layers.back();
    const Front& front = *node.front;
    const double slope = chain_.layers[front.layer].slope;
    const Range range = ranges(front, point);
    VectorXd row = VectorXd::Zero(problem_.x.size());
    double offset = out.bias[problem_.predicted] - out.bias[other];
    for (Index h = 0; h < front.rows.rows(); ++h) {
      const double weight = out.weight(problem_.predicted, h) - out.weight(other, h);
      const std::int8_t state = node.state[static_cast<std::size_t>(h)];
      double line = state > 0 ? 1 : slope, raised = 0;
      if (state == 0) {
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

  // Between what bounds the units' weights in the ranked gradient G = sum_h a_h rows_h lie.
  Range weights_of(const Node& node, const VectorXd& point) const {
    const std::size_t first = node.front->layer;
    std::vector<Range> slopes{Range{}};
    slopes[0].low = slopes[0].high = slopes_of(first, node.state);
    const double own = chain_.layers[first].slope;
    for (Index h = 0; h < slopes[0].low.size(); ++h) {
      if (node.state[static_cast<std::size_t>(h)] != 0) continue;
      slopes[0].low[h] = std::min(own, 1.0);
      slopes[0].high[h] = std::max(own, 1.0);
    }
    if (first + 2 < chain_.layers.size()) add_later_slopes(node, ranges(*node.front, point), slopes);
    Range weights{problem_.explained, problem_.explained};
    for (std::size_t i = chain_.layers.size() - 1; i > first; --i) {
      weights = times(weights, chain_.layers[i].weight.transpose());
      weights = times(weights, slopes[i - 1 - first]);
    }
    return weights;
  }

  void add_later_slopes(const Node& node, Range range, std::vector<Range>& slopes) const {
    for (std::size_t i = node.front->layer; i + 2 < chain_.layers.size(); ++i) {
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
        const bool can_be_on = range.high[h] > -slack_[i + 1][h], can_be_off = range.low[h] < slack_[i + 1][h];
        const double a = can_be_on ? 1 : other, b = can_be_off ? other : 1;
        own.low[h] = std::min(a, b);
        own.high[h] = std::max(a, b);
      }
      slopes.push_back(std::move(own));
    }
  }

  static Range times(const Range& x, const MatrixXd& weight) {
    const VectorXd middle = weight * ((x.low + x.high) / 2), reach = weight.cwiseAbs() * ((x.high - x.low) / 2);
    return {middle - reach, middle + reach};
  }
  static Range times(const Range& x, const Range& factor) {
    const VectorXd a = x.low.cwiseProduct(factor.low), b = x.low.cwiseProduct(factor.high), c = x.high.cwiseProduct(factor.low),
                   d = x.high.cwiseProduct(factor.high);
    return {a.cwiseMin(b).cwiseMin(c.cwiseMin(d)), a.cwiseMax(b).cwiseMax(c.cwiseMax(d))};
  }

  // Keeps the pairs that may change, and says by which unit to branch: the open one with the largest part in them.
  void bound_pairs(Node& node, const Range& weights) {
    const VectorXd middle = (weights.low + weights.high) / 2, half = (weights.high - weights.low) / 2;
    const MatrixXd& rows = node.front->ranked;
    const VectorXd gradient = rows.transpose() * middle;
    moving_.clear();
    for (Index h = 0; h < half.size(); ++h) {
      if (half[h] > 0) moving_.push_back(h);
    }
    influence_.assign(static_cast<std::size_t>(half.size()), 0);
    std::erase_if(node.open, [&](const Pair& pair) {
      const Index i = problem_.top[static_cast<std::size_t>(pair.above)], j = others_[static_cast<std::size_t>(pair.below)];
      double together = 0, apart = 0;
      for (const Index h : moving_) {
        together += half[h] * std::abs(rows(h, i) - rows(h, j));
        apart += half[h] * std::abs(rows(h, i) + rows(h, j));
      }
      const double sign = gradient[i] < 0 ? -1 : 1;
      const double least = std::min(sign * (gradient[i] - gradient[j]) - together, sign * (gradient[i] + gradient[j]) - apart);
      if (least > gradient_slack_[i] + gradient_slack_[j]) return true;
      for (const Index h : moving_)
        influence_[static_cast<std::size_t>(h)] +=
            half[h] * std::min(std::abs(rows(h, i) - rows(h, j)), std::abs(rows(h, i) + rows(h, j)));
      return false;
    });
    node.kept = k_ - most_left(node.open);
    choose_branch(node);
  }

  std::int64_t most_left(const std::vector<Pair>& open) {
    matrix_.assign(static_cast<std::size_t>(k_) * others_.size(), 0);
    for (const Pair& pair : open)
      matrix_[static_cast<std::size_t>(pair.above) * others_.size() + static_cast<std::size_t>(pair.below)] = 1;
    return metric::most_swaps(matrix_, k_, static_cast<std::int64_t>(others_.size()));
  }

  void choose_branch(Node& node) const {
    node.branch = -1;
    double most = -1;
    for (std::size_t h = 0; h < node.state.size(); ++h) {
      if (node.state[h] == 0 && influence_[h] > most) {
        most = influence_[h];
        node.branch = static_cast<Index>(h);
      }
    }
  }

  void judge_leaf(Node& node) {
    const std::vector<Pattern> patterns = patterns_before(*node.front);
    const VectorXd gradient = node.front->ranked.transpose() * problem_.explained;
    const VectorXd slack = gradient_slack([&](std::size_t i) { return VectorXd(slopes_of(i, patterns[i]).cwiseAbs()); });
    // Whether i is surely above j. Sums of nothing are exactly equal: the lower one is first.
    const auto surely_above = [&](Index i, Index j) {
      const double gap = std::abs(gradient[i]) - std::abs(gradient[j]), reach = slack[i] + slack[j];
      return gap > reach || (reach == 0 && gap == 0 && i < j);
    };
    std::erase_if(node.open, [&](const Pair& pair) {
      return surely_above(problem_.top[static_cast<std::size_t>(pair.above)], others_[static_cast<std::size_t>(pair.below)]);
    });
    double least = share(static_cast<std::size_t>(k_ - most_left(node.open)));
    if (top_is_sure(gradient, surely_above)) least = std::max(least, value_of(gradient));
    if (least >= value_) return;
    confirm(patterns);
    if (least < value_) unshown_ = std::min(unshown_, least);
  }

  // Whether rounding cannot change which features are on top: then the metric is known too.
  template <class SurelyAbove>
  bool top_is_sure(const VectorXd& gradient, const SurelyAbove& surely_above) const {
    std::vector<Index> order(static_cast<std::size_t>(gradient.size()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return std::abs(gradient[a]) > std::abs(gradient[b]); });
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(k_);
    return std::all_of(order.begin(), middle,
                       [&](Index i) { return std::all_of(middle, order.end(), [&](Index j) { return surely_above(i, j); }); });
  }

  static std::vector<Pattern> patterns_before(const Front& last) {
    std::vector<Pattern> patterns;
    for (const Front* front = &last; front->previous; front = front->previous.get()) patterns.push_back(front->before);
    std::reverse(patterns.begin(), patterns.end());
    return patterns;
  }

  double value_of(const VectorXd& gradient) const {
    const VectorXd map = gradient.cwiseAbs();
    return judge_.value({map.data(), static_cast<std::size_t>(map.size())});
  }

  // The cell that holds the part's nearest point, decided units as they are: where it would be worse than what is known, a point
  // in it is looked for.
  void try_pattern_at(const Node& node, const VectorXd& point) {
    const Front& front = *node.front;
    std::vector<Pattern> patterns = patterns_before(front);
    Pattern state = node.state;
    VectorXd values = front.rows * point + front.offset;
    MatrixXd rows = front.ranked;
    for (std::size_t i = front.layer; i + 1 < chain_.layers.size(); ++i) {
      if (i > front.layer) state.assign(static_cast<std::size_t>(values.size()), 0);
      for (Index h = 0; h < values.size(); ++h) {
        std::int8_t& own = state[static_cast<std::size_t>(h)];
        if (own == 0) own = values[h] > 0 ? 1 : -1;
      }
      const VectorXd slopes = slopes_of(i, state);
      patterns.push_back(state);
      const Chain::Layer& next = chain_.layers[i + 1];
      rows = next.weight * (slopes.asDiagonal() * rows);
      values = next.weight * slopes.cwiseProduct(values) + next.bias;
    }
    if (value_of(rows.transpose() * problem_.explained) < value_) confirm(patterns);
  }

  // Looks for a point well inside the cell of a pattern and asks the judge.
  void confirm(const std::vector<Pattern>& patterns) {
    std::string name;
    for (const Pattern& pattern : patterns) name.append(pattern.begin(), pattern.end());
    if (!tried_.insert(name).second) return;
    for (const double depth : kDepths) {
      std::vector<HalfSpace> spaces = cell(patterns, depth * problem_.radius);
      std::vector<const HalfSpace*> all;
      for (const HalfSpace& space : spaces) all.push_back(&space);
      Nearest nearest = geometry_.start();
      if (!geometry_.move(nearest, all, kInside * problem_.radius)) continue;
      const double value = judge_.confirm(nearest.point);
      if (std::isnan(value)) continue;
      value_ = std::min(value_, value);
      return;
    }
  }

  // The cell, each boundary moved inwards by `depth`.
  std::vector<HalfSpace> cell(const std::vector<Pattern>& patterns, double depth) const {
    std::vector<HalfSpace> spaces;
    MatrixXd rows = chain_.layers[0].weight;
    VectorXd offset = chain_.layers[0].bias;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      for (Index h = 0; h < rows.rows(); ++h) {
        const double sign = patterns[i][static_cast<std::size_t>(h)];
        HalfSpace space = free_half_space(-sign * rows.row(h).transpose(), sign * offset[h] - 2 * slack_[i][h]);
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
      HalfSpace space = free_half_space((rows.row(other) - rows.row(problem_.predicted)).transpose(),
                                        offset[problem_.predicted] - offset[other] - 3 * problem_.margin - 2 * margin_slack_);
      space.limit -= depth * space.size;
      spaces.push_back(std::move(space));
    }
    return spaces;
  }

  const Chain& chain_;
  const CellProblem& problem_;
  const CellLimits& limits_;
  const CellJudge& judge_;
  double value_, unshown_ = kEndless;
  NearestPoint geometry_;
  const std::int64_t k_;
  const bool boxed_;
  std::vector<Index> others_;
  std::vector<VectorXd> slack_;  // of each layer's pre-activations
  double margin_slack_ = 0, gradient_rounding_ = 0;
  VectorXd gradient_slack_;
  std::vector<std::vector<Node>> open_by_kept_;
  std::unordered_set<std::string> tried_;
  std::int64_t nodes_ = 0, next_look_ = kNodesBetweenLooks;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  // Memory that is used again.
  std::vector<std::int8_t> matrix_;
  std::vector<double> influence_;
  std::vector<Index> moving_;
};

}  // namespace

std::int64_t Chain::units() const {
  std::int64_t count = 0;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) count += layers[i].weight.rows();
  return count;
}

CellAnswer search_cells(const Chain& chain, const CellProblem& problem, const CellLimits& limits, const CellJudge& judge,
                        double known) {
  return Search(chain, problem, limits, judge, known).run();
}

}  // namespace holdfast::attack::exact
