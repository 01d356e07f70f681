#include "cell_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "holdfast/core/clock.h"
#include "holdfast/core/interrupt.h"
#include "nearest_point.h"
#include "pair_bounds.h"
#include "part.h"
#include "rounding.h"

namespace holdfast::attack::exact {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kEndless = std::numeric_limits<double>::infinity();
// How deep inside its cell a point should lie, of the radius, the deepest tried first; and how much of the ball it may use.
constexpr double kDepths[] = {1e-2, 1e-3, 1e-4, 1e-5};
constexpr double kInside = 1 - 1e-6;
constexpr std::int64_t kNodesBetweenLooks = 256;  // at the clock
constexpr double kRoundingOfValues = 1e-12;
// Of the reach of the larger half of a part: what the smaller one counts as at least.
constexpr double kSmallestHalf = 1e-6;

struct Node {
  std::shared_ptr<const Front> front;
  Pattern state;
  std::vector<const HalfSpace*> cuts;
  Nearest nearest;
  std::vector<Pair> open;
  std::int64_t level = 0;  // so much surely stays (pair_bounds.h)
  Index branch = -1;
  double side = 0;  // the branch unit's pre-activation at the nearest point
};

class Search {
 public:
  Search(const Chain& chain, const CellProblem& problem, const CellLimits& limits, const CellJudge& judge, double known)
      : chain_(chain),
        problem_(problem),
        limits_(limits),
        judge_(judge),
        value_(known),
        nearest_point_(problem.x, problem.low, problem.high),
        rounding_(chain, problem),
        geometry_(chain, problem, rounding_),
        pairs_(problem),
        open_by_level_(static_cast<std::size_t>(pairs_.highest()) + 1) {}

  CellAnswer run() {
    add_root();
    while (const auto level = lowest()) {
      if (is_no_worse(pairs_.least_value(*level)) || is_over()) break;
      std::vector<Node>& nodes = open_by_level_[static_cast<std::size_t>(*level)];
      const Node node = std::move(nodes.back());
      nodes.pop_back();
      split(node);
    }
    double proven = unshown_;
    if (const auto level = lowest()) proven = std::min(proven, pairs_.least_value(*level));
    return {.proven = is_no_worse(proven) ? value_ : proven, .value = value_, .nodes = nodes_};
  }

 private:
  // Whether a bound is no worse than what is known, but for the rounding of the metric itself.
  bool is_no_worse(double bound) const { return bound >= value_ - kRoundingOfValues; }

  std::optional<std::int64_t> lowest() const {
    const auto is_used = [](const std::vector<Node>& nodes) { return !nodes.empty(); };
    const auto first = std::find_if(open_by_level_.begin(), open_by_level_.end(), is_used);
    if (first == open_by_level_.end()) return std::nullopt;
    return first - open_by_level_.begin();
  }

  bool is_over() {
    if (nodes_ >= limits_.nodes) return true;
    if (nodes_ < next_look_) return false;
    next_look_ = nodes_ + kNodesBetweenLooks;
    throw_if_interrupted();
    return limits_.seconds > 0 && seconds_since(started_) > limits_.seconds;
  }

  void add_root() {
    Node root{.front = geometry_.make_front(nullptr, {}), .nearest = nearest_point_.start()};
    root.state.assign(static_cast<std::size_t>(root.front->rows.rows()), 0);
    root.open = pairs_.all();
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
      if (!nearest_point_.move(node.nearest, node.cuts, problem_.radius)) return;
      point = node.nearest.point;
      if (!geometry_.is_last(*node.front)) settle(node, point);
      if (!keep_class(node, point)) return;
      if (geometry_.is_last(*node.front)) return judge_leaf(node);
      if (std::find(node.state.begin(), node.state.end(), 0) != node.state.end()) break;
      Node next = node;  // all units of the layer are decided: on to the next
      next.front = geometry_.make_front(node.front, node.state);
      next.state.assign(static_cast<std::size_t>(next.front->rows.rows()), 0);
      node = std::move(next);
    }
    bound_pairs(node, point);
    if (is_no_worse(pairs_.least_value(node.level))) return;
    try_pattern_at(node, point);
    if (is_no_worse(pairs_.least_value(node.level))) return;
    node.side = node.front->rows.row(node.branch).dot(point) + node.front->offset[node.branch];
    open_by_level_[static_cast<std::size_t>(node.level)].push_back(std::move(node));
  }

  // Decides the units that no point of the part switches.
  void settle(Node& node, const VectorXd& point) const {
    const Range range = geometry_.ranges(*node.front, point);
    const VectorXd& slack = rounding_.of_layer(node.front->layer);
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
        classes.push_back(geometry_.is_last(front) ? geometry_.exact_class(front, other)
                                                   : geometry_.class_above(front, node.state, point, other));
    }
    std::vector<const HalfSpace*> spaces = node.cuts;
    for (const HalfSpace& space : classes) spaces.push_back(&space);
    Nearest nearest = node.nearest;
    if (!nearest_point_.move(nearest, spaces, problem_.radius)) return false;
    point = nearest.point;
    if (!geometry_.is_last(front)) settle(node, point);
    return true;
  }

  // Keeps the pairs that may change, and says by which unit to branch: the open one with the largest part in them.
  void bound_pairs(Node& node, const VectorXd& point) {
    const Range weights = geometry_.weights_of(*node.front, node.state, point);
    pairs_.drop_decided(node.open, node.front->ranked, weights, rounding_.of_gradient());
    node.level = pairs_.level(node.open);
    choose_branch(node, point);
  }

  // A unit that the part hardly reaches counts for more: its small half is soon done with, and the other one knows the unit.
  // On tables that takes a half to a quarter of the parts that the largest influence alone or even halves take.
  void choose_branch(Node& node, const VectorXd& point) const {
    const Range range = geometry_.ranges(*node.front, point);
    node.branch = -1;
    double most = -1;
    for (Index h = 0; h < range.low.size(); ++h) {
      if (node.state[static_cast<std::size_t>(h)] != 0) continue;
      const double on = std::max(range.high[h], 0.0), off = std::max(-range.low[h], 0.0);
      const double larger = std::max(on, off), smaller = std::max(std::min(on, off), kSmallestHalf * larger);
      const double weight = pairs_.influence()[static_cast<std::size_t>(h)] * (larger > 0 ? larger / smaller : 1);
      if (weight <= most) continue;
      most = weight;
      node.branch = h;
    }
  }

  void judge_leaf(Node& node) {
    const std::vector<Pattern> patterns = node.front->patterns_before();
    std::vector<VectorXd> slopes;
    for (std::size_t i = 0; i < patterns.size(); ++i) slopes.push_back(geometry_.slopes_of(i, patterns[i]));
    const VectorXd gradient = node.front->ranked.transpose() * problem_.explained;
    const VectorXd slack = rounding_.of_gradient(slopes);
    const auto compare = [&](Index i, Index j) {
      const double gap = std::abs(gradient[i]) - std::abs(gradient[j]), reach = slack[i] + slack[j];
      if (gap > reach) return PairBounds::Known::kAbove;
      return reach == 0 && gap == 0 ? PairBounds::Known::kEqual : PairBounds::Known::kNothing;  // equal are sums of nothing
    };
    pairs_.drop_sure(node.open, compare);
    double least = pairs_.least_value(pairs_.level(node.open));
    if (pairs_.is_sure(gradient, compare)) least = std::max(least, value_of(gradient));
    if (is_no_worse(least)) return;
    confirm(patterns);
    if (!is_no_worse(least)) unshown_ = std::min(unshown_, least);
  }

  double value_of(const VectorXd& gradient) const {
    const VectorXd map = gradient.cwiseAbs();
    return judge_.value({map.data(), static_cast<std::size_t>(map.size())});
  }

  // The cell that holds the part's nearest point, decided units as they are: where it would be worse than what is known, a point
  // in it is looked for.
  void try_pattern_at(const Node& node, const VectorXd& point) {
    const Front& front = *node.front;
    std::vector<Pattern> patterns = front.patterns_before();
    Pattern state = node.state;
    VectorXd values = front.rows * point + front.offset;
    MatrixXd rows = front.ranked;
    for (std::size_t i = front.layer; i + 1 < chain_.layers.size(); ++i) {
      if (i > front.layer) state.assign(static_cast<std::size_t>(values.size()), 0);
      for (Index h = 0; h < values.size(); ++h) {
        std::int8_t& own = state[static_cast<std::size_t>(h)];
        if (own == 0) own = values[h] > 0 ? 1 : -1;
      }
      const VectorXd slopes = geometry_.slopes_of(i, state);
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
      std::vector<HalfSpace> spaces = geometry_.cell(patterns, depth * problem_.radius);
      std::vector<const HalfSpace*> all;
      for (const HalfSpace& space : spaces) all.push_back(&space);
      Nearest nearest = nearest_point_.start();
      if (!nearest_point_.move(nearest, all, kInside * problem_.radius)) continue;
      const double value = judge_.confirm(nearest.point);
      if (std::isnan(value)) continue;
      value_ = std::min(value_, value);
      return;
    }
  }

  const Chain& chain_;
  const CellProblem& problem_;
  const CellLimits& limits_;
  const CellJudge& judge_;
  double value_, unshown_ = kEndless;
  const NearestPoint nearest_point_;
  const Rounding rounding_;
  const PartGeometry geometry_;
  PairBounds pairs_;
  std::vector<std::vector<Node>> open_by_level_;
  std::unordered_set<std::string> tried_;
  std::int64_t nodes_ = 0, next_look_ = kNodesBetweenLooks;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
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
