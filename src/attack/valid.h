// Rows of tables: from a point between valid rows to a valid row inside the ball.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "holdfast/core/rng.h"
#include "rows.h"

namespace holdfast::attack::rows {

// ThreatModel::admit, in place; threat.valid is set.
template <class Number>
void round_to_valid(const ThreatModel& threat, Shape shape, const Number* clean, Number* points);

// A point that rounds to a random valid row: groups in random order take another level, each with even chance, while the ball
// lasts; the other free elements move by a random vector of what is left of it. `draw(count, radius)` gives such a vector.
template <class Number, class Draw>
void draw_valid(const ThreatModel& threat, std::int64_t n, const Number* clean, RandomStream& stream, const Draw& draw,
                Number* point);

// How much of a ball a move of one element takes; used up when the sum (linf: the largest) exceeds `limit`.
class Budget {
 public:
  Budget(Norm norm, double epsilon) : norm_(norm), limit_(norm == Norm::kL2 ? epsilon * epsilon : epsilon) {}

  // Takes a cost when it fits, whole or not at all.
  bool take(double cost);
  double cost(double move) const;
  // Adds two costs.
  double join(double a, double b) const;
  // The radius of the ball that is left for other elements.
  double radius() const;

 private:
  Norm norm_;
  double limit_, used_ = 0;
};

// What a group may do: its level in the clean row, and the levels it may take, which are not frozen; none when it may not move.
struct GroupChoice {
  std::int64_t clean = 0;
  std::vector<std::int64_t> others = {};
};
template <class Number>
GroupChoice group_choice(const ThreatModel& threat, const std::vector<std::int64_t>& columns, const Number* clean);

// What it costs to make the row's group exactly one-hot at `level`.
template <class Number>
double switch_cost(const Budget& budget, const std::vector<std::int64_t>& columns, std::int64_t level, const Number* clean);

// Elements that belong to no group and are not frozen.
std::vector<std::int64_t> free_numbers(const ThreatModel& threat, std::int64_t n);

template <class Number, class Draw>
void draw_valid(const ThreatModel& threat, std::int64_t n, const Number* clean, RandomStream& stream, const Draw& draw,
                Number* point) {
  std::copy(clean, clean + n, point);
  Budget budget(threat.norm, threat.epsilon);
  const auto& groups = threat.valid->groups;
  for (const std::int64_t group : stream.permutation(static_cast<std::int64_t>(groups.size()))) {
    const auto& columns = groups[static_cast<std::size_t>(group)];
    const GroupChoice choice = group_choice(threat, columns, clean);
    if (stream.bits() % 2 == 0 || choice.others.empty()) continue;
    const std::int64_t level = choice.others[stream.below(choice.others.size())];
    if (!budget.take(switch_cost(budget, columns, level, clean))) continue;
    for (const std::int64_t column : columns) point[column] = static_cast<Number>(column == level);
  }
  const std::vector<std::int64_t> numbers = free_numbers(threat, n);
  const std::vector<double> move = draw(static_cast<std::int64_t>(numbers.size()), budget.radius());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    point[numbers[i]] = static_cast<Number>(static_cast<double>(clean[numbers[i]]) + move[i]);
  }
}

}  // namespace holdfast::attack::rows
