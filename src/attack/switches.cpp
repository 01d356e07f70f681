#include "switches.h"

#include <algorithm>

namespace holdfast::attack::rows {
namespace {

using Columns = std::vector<std::int64_t>;

bool is_held(const Switches& switches, std::int64_t column) {
  return !switches.held.empty() && switches.held[static_cast<std::size_t>(column)];
}

// The first of the columns with the largest value.
template <class Number>
std::int64_t level_of(const Columns& columns, const Number* row) {
  return *std::ranges::max_element(columns, {}, [&](std::int64_t column) { return row[column]; });
}

// The levels that a group may take instead of `now`: none where that is frozen.
Columns other_levels(const Switches& switches, const Columns& columns, std::int64_t now) {
  Columns others;
  for (const std::int64_t column : columns) {
    if (column != now && !is_held(switches, now) && !is_held(switches, column)) others.push_back(column);
  }
  return others;
}

template <class Number>
void put_level(const Columns& columns, std::int64_t level, Number* row) {
  for (const std::int64_t column : columns) row[column] = static_cast<Number>(column == level);
}

}  // namespace

template <class Number>
void take_levels(const Switches& switches, Shape shape, const Number* wanted, const Number* clean, Number* points) {
  struct Wish {
    const Columns* columns;
    std::int64_t level;
    Number gain;  // how much more the point has of the new level than of the clean one
  };
  std::vector<Wish> wishes;
  for (std::int64_t row = 0; row < shape.count; ++row, wanted += shape.n, clean += shape.n, points += shape.n) {
    wishes.clear();
    for (const Columns& columns : switches.groups) {
      const std::int64_t now = level_of(columns, clean);
      Wish best{&columns, now, 0};
      for (const std::int64_t level : other_levels(switches, columns, now)) {
        if (wanted[level] - wanted[now] > best.gain) best = {&columns, level, wanted[level] - wanted[now]};
      }
      if (best.level != now) wishes.push_back(best);
    }
    std::ranges::stable_sort(wishes, [](const Wish& a, const Wish& b) { return a.gain > b.gain; });
    if (wishes.size() > static_cast<std::size_t>(switches.most)) wishes.erase(wishes.begin() + switches.most, wishes.end());
    for (const Wish& wish : wishes) put_level(*wish.columns, wish.level, points);
  }
}

void draw_levels(const Switches& switches, RandomStream& stream, double* point) {
  auto left = static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(switches.most) + 1));
  for (const std::int64_t group : stream.permutation(std::ssize(switches.groups))) {
    if (left == 0) return;
    const Columns& columns = switches.groups[static_cast<std::size_t>(group)];
    const Columns others = other_levels(switches, columns, level_of(columns, point));
    if (others.empty()) continue;
    put_level(columns, others[stream.below(others.size())], point);
    --left;
  }
}

template void take_levels(const Switches&, Shape, const float*, const float*, float*);
template void take_levels(const Switches&, Shape, const double*, const double*, double*);

}  // namespace holdfast::attack::rows
