#include "valid.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace holdfast::attack::rows {
namespace {

// Positions on a grid are found to this share of a step: values were rounded to float when they were encoded.
constexpr double kGridRounding = 1e-4;

struct Switch {
  const std::vector<std::int64_t>* columns;
  std::int64_t level;
  double gain;  // how much more the point has of the new level than of the clean one
  double cost;
};

// Rounds one row: levels first, then numbers with what is left of the ball.
template <class Number>
class Rounding {
 public:
  Rounding(const ThreatModel& threat, std::int64_t n, const std::vector<std::int64_t>& numbers, const Number* clean, Number* row)
      : threat_(threat), valid_(*threat.valid), n_(n), numbers_(numbers), clean_(clean), row_(row), wanted_(row, row + n) {}

  void run() {
    std::copy(clean_, clean_ + n_, row_);
    Budget budget(threat_.norm, threat_.epsilon);
    std::vector<Switch> switches = wanted_switches(budget);
    std::erase_if(switches, [&](const Switch& candidate) { return !budget.take(candidate.cost); });
    for (const Switch& taken : switches) {
      for (const std::int64_t column : *taken.columns) row_[column] = static_cast<Number>(column == taken.level);
    }
    round_numbers(budget.radius());
    undo_what_is_confined();
    if (distance(threat_.norm, n_, clean_, row_) > threat_.epsilon) std::copy(clean_, clean_ + n_, row_);
  }

 private:
  // The strongest wishes first; of equal ones the first group's.
  std::vector<Switch> wanted_switches(const Budget& budget) const {
    std::vector<Switch> switches;
    for (const std::vector<std::int64_t>& columns : valid_.groups) {
      const GroupChoice choice = group_choice(threat_, columns, clean_);
      Switch best{&columns, choice.clean, 0, 0};
      for (const std::int64_t level : choice.others) {
        const double gain = static_cast<double>(wanted(level)) - static_cast<double>(wanted(choice.clean));
        if (gain > best.gain) best = {&columns, level, gain, 0};
      }
      if (best.level == choice.clean) continue;
      best.cost = switch_cost(budget, columns, best.level, clean_);
      switches.push_back(best);
    }
    std::stable_sort(switches.begin(), switches.end(), [](const Switch& a, const Switch& b) { return a.gain > b.gain; });
    return switches;
  }

  // Numbers at their nearest valid values; where those leave the ball, all moves are shortened by one factor and rounded
  // towards the clean values, with a little more room each time that rounding to float left it.
  void round_numbers(double radius) {
    if (threat_.norm == Norm::kLinf) {
      for (const std::int64_t i : numbers_) row_[i] = nearest(i, radius);
      return;
    }
    std::vector<double> moves(numbers_.size());
    for (std::size_t i = 0; i < moves.size(); ++i) {
      moves[i] = target(numbers_[i]) - origin(numbers_[i]);
      row_[numbers_[i]] = nearest(numbers_[i], threat_.epsilon);
    }
    const double length = size(threat_.norm, moves);
    double factor = length > 0 ? std::min(1.0, radius / length) : 0;
    for (double slack = 1e-7; distance(threat_.norm, n_, clean_, row_) > threat_.epsilon && factor > 0; slack *= 4) {
      for (std::size_t i = 0; i < moves.size(); ++i) row_[numbers_[i]] = towards_clean(numbers_[i], factor * moves[i]);
      factor *= std::max(0.0, 1 - slack);
    }
    if (factor == 0) {
      for (const std::int64_t i : numbers_) row_[i] = clean_[i];
    }
  }

  // Numbers and groups that rounding put where the threat's options do not allow them stay as they are in the clean row.
  void undo_what_is_confined() {
    std::vector<Number> held(row_, row_ + n_);
    if (!confine(threat_, n_, clean_, held.data())) return;
    const auto differs = [&](std::int64_t i) { return held[at(i)] != row_[i]; };
    for (const std::vector<std::int64_t>& columns : valid_.groups) {
      if (std::none_of(columns.begin(), columns.end(), differs)) continue;
      for (const std::int64_t column : columns) row_[column] = clean_[column];
    }
    for (const std::int64_t i : numbers_) {
      if (differs(i)) row_[i] = clean_[i];
    }
  }

  // The nearest valid value to the wanted one, or the farthest towards it that is within `reach`.
  Number nearest(std::int64_t i, double reach) const {
    const double move = target(i) - origin(i);
    if (move == 0) return clean_[i];
    const double step = valid_.step[at(i)];
    if (step == 0) return towards_clean(i, std::clamp(move, -reach, reach));
    const Number value = on_grid(i, std::round((target(i) - valid_.low[at(i)]) / step));
    if (std::abs(static_cast<double>(value) - origin(i)) <= reach) return value;
    return towards_clean(i, std::clamp(move, -reach, reach));
  }

  // The valid value that is no farther from the clean one than `move`, on its side.
  Number towards_clean(std::int64_t i, double move) const {
    const double step = valid_.step[at(i)], value = origin(i) + move;
    if (step == 0) {
      if (value < low(i) || value > high(i)) return clean_[i];
      Number rounded = static_cast<Number>(value);
      if (std::abs(static_cast<double>(rounded) - origin(i)) > std::abs(move)) rounded = std::nextafter(rounded, clean_[i]);
      return rounded;
    }
    const double position = (value - valid_.low[at(i)]) / step;
    const Number rounded = on_grid(i, move > 0 ? std::floor(position + kGridRounding) : std::ceil(position - kGridRounding));
    const double moved = static_cast<double>(rounded) - origin(i);
    return moved * move > 0 ? rounded : clean_[i];  // the grid has nothing in between
  }

  // low + index * step, kept inside the range; where that is the clean value but for rounding, the clean value itself.
  Number on_grid(std::int64_t i, double index) const {
    const double start = valid_.low[at(i)], step = valid_.step[at(i)];
    const double first = std::ceil((low(i) - start) / step - kGridRounding);
    const double last = std::floor((high(i) - start) / step + kGridRounding);
    if (first > last) return clean_[i];
    const double value = start + std::clamp(index, first, last) * step;
    return std::abs(value - origin(i)) <= kGridRounding * step ? clean_[i] : static_cast<Number>(value);
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  Number wanted(std::int64_t i) const { return wanted_[at(i)]; }
  double origin(std::int64_t i) const { return static_cast<double>(clean_[i]); }
  double low(std::int64_t i) const { return threat_.box ? std::max(valid_.low[at(i)], threat_.box->first) : valid_.low[at(i)]; }
  double high(std::int64_t i) const {
    return threat_.box ? std::min(valid_.high[at(i)], threat_.box->second) : valid_.high[at(i)];
  }
  // Where the element wants to be, inside its range; the clean value stays as it is even outside.
  double target(std::int64_t i) const {
    if (wanted(i) == clean_[i]) return origin(i);
    return std::clamp(static_cast<double>(wanted(i)), low(i), std::max(low(i), high(i)));
  }

  const ThreatModel& threat_;
  const ValidRows& valid_;
  std::int64_t n_;
  const std::vector<std::int64_t>& numbers_;
  const Number* clean_;
  Number* row_;
  std::vector<Number> wanted_;
};

}  // namespace

bool Budget::take(double cost) {
  const double together = join(used_, cost);
  if (together > limit_) return false;
  used_ = together;
  return true;
}

double Budget::cost(double move) const {
  return norm_ == Norm::kL2 ? move * move : std::abs(move);
}

double Budget::join(double a, double b) const {
  return norm_ == Norm::kLinf ? std::max(a, b) : a + b;
}

double Budget::radius() const {
  if (norm_ == Norm::kLinf) return limit_;
  const double left = std::max(0.0, limit_ - used_);
  return norm_ == Norm::kL2 ? std::sqrt(left) : left;
}

template <class Number>
GroupChoice group_choice(const ThreatModel& threat, const std::vector<std::int64_t>& columns, const Number* clean) {
  GroupChoice choice{.clean = *std::max_element(columns.begin(), columns.end(),
                                                [&](std::int64_t a, std::int64_t b) { return clean[a] < clean[b]; })};
  if (threat.is_frozen(choice.clean)) return choice;
  for (const std::int64_t column : columns) {
    if (column != choice.clean && !threat.is_frozen(column)) choice.others.push_back(column);
  }
  return choice;
}

template <class Number>
double switch_cost(const Budget& budget, const std::vector<std::int64_t>& columns, std::int64_t level, const Number* clean) {
  double cost = 0;
  for (const std::int64_t column : columns) {
    cost = budget.join(cost, budget.cost((column == level ? 1.0 : 0.0) - static_cast<double>(clean[column])));
  }
  return cost;
}

std::vector<std::int64_t> free_numbers(const ThreatModel& threat, std::int64_t n) {
  std::vector<bool> taken(static_cast<std::size_t>(n), false);
  for (const auto& columns : threat.valid->groups) {
    for (const std::int64_t column : columns) taken[static_cast<std::size_t>(column)] = true;
  }
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!taken[static_cast<std::size_t>(i)] && !threat.is_frozen(i)) numbers.push_back(i);
  }
  return numbers;
}

template <class Number>
void round_to_valid(const ThreatModel& threat, Shape shape, const Number* clean, Number* points) {
  const std::vector<std::int64_t> numbers = free_numbers(threat, shape.n);
  for (std::int64_t row = 0; row < shape.count; ++row, clean += shape.n, points += shape.n) {
    Rounding<Number>(threat, shape.n, numbers, clean, points).run();
  }
}

template GroupChoice group_choice(const ThreatModel&, const std::vector<std::int64_t>&, const float*);
template GroupChoice group_choice(const ThreatModel&, const std::vector<std::int64_t>&, const double*);
template double switch_cost(const Budget&, const std::vector<std::int64_t>&, std::int64_t, const float*);
template double switch_cost(const Budget&, const std::vector<std::int64_t>&, std::int64_t, const double*);
template void round_to_valid(const ThreatModel&, Shape, const float*, float*);
template void round_to_valid(const ThreatModel&, Shape, const double*, double*);

}  // namespace holdfast::attack::rows
