#include "margin_effects.h"

#include <algorithm>
#include <limits>

#include "holdfast/core/error.h"
#include "holdfast/explain/valid_moves.h"

namespace holdfast::train {
namespace margin_effects {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor integers(const std::vector<std::int64_t>& values) {
  return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong);
}
at::Tensor reals(const std::vector<double>& values) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble);
}

}  // namespace margin_effects

using margin_effects::integers;
using margin_effects::reals;

MarginEffects::MarginEffects(const Schema& schema, const TableMargin& form) {
  const explain::valid_effect::Moves moves(schema);
  const std::int64_t n = schema.layout.inputs(), count = std::ssize(moves.numbers), categories = std::ssize(moves.categories);
  std::vector<std::int64_t> places, features;
  std::vector<double> low, high, move, deviation;
  columns_ = at::zeros({moves.features, n}, at::kDouble);
  for (const explain::valid_effect::Number& number : moves.numbers) {
    places.push_back(number.column);
    features.push_back(number.feature);
    low.push_back(number.low);
    high.push_back(number.high);
    move.push_back(number.move);
    deviation.push_back(number.weight * number.move);
    columns_[number.feature][number.column] = 1;
  }
  numbers_ = integers(places);
  low_ = reals(low);
  high_ = reals(high);
  move_ = reals(move);
  deviation_ = reals(deviation);

  std::vector<std::int64_t> level, other;
  same_ = at::zeros({n, n}, at::kDouble);
  share_ = at::zeros({n, categories}, at::kDouble);
  for (std::int64_t c = 0; c < categories; ++c) {
    const explain::valid_effect::Category& category = moves.categories[static_cast<std::size_t>(c)];
    features.push_back(category.feature);
    for (const std::int64_t one : category.columns) {
      columns_[category.feature][one] = 1;
      share_[one][c] = 1.0 / (static_cast<double>(category.columns.size()) - 1);
      for (const std::int64_t two : category.columns) {
        same_[one][two] = 1;
        level.push_back(one);
        other.push_back(two);
      }
    }
  }
  level_ = integers(level);
  other_ = integers(other);
  std::vector<std::int64_t> order;  // those that never change have no effect: a column of zeros behind the others
  for (std::int64_t feature = 0; feature < moves.features; ++feature)
    order.push_back(std::find(features.begin(), features.end(), feature) - features.begin());
  order_ = integers(order);

  std::vector<std::vector<double>> knots(moves.numbers.size());
  std::vector<std::int64_t> bend_number, bend_place;
  for (std::int64_t i = 0; i < form.bends.count(); ++i) {
    const auto number =
        std::ranges::find(moves.numbers, form.bends.columns[i].item<std::int64_t>(), &explain::valid_effect::Number::column);
    HOLDFAST_CHECK(number != moves.numbers.end());
    std::vector<double>& own = knots[static_cast<std::size_t>(number - moves.numbers.begin())];
    own.push_back(form.bends.knots[i].item<double>());
    HOLDFAST_CHECK(own.size() < 2 || own[own.size() - 2] < own.back());
    bend_number.push_back(number - moves.numbers.begin());
    bend_place.push_back(std::ssize(own) - 1);
  }
  std::size_t most = 0;
  for (const std::vector<double>& own : knots) most = std::max(most, own.size());
  knots_ = at::full({count, static_cast<std::int64_t>(most)}, margin_effects::kInfinity, at::kDouble);
  for (std::size_t j = 0; j < knots.size(); ++j) {
    for (std::size_t i = 0; i < knots[j].size(); ++i)
      knots_[static_cast<std::int64_t>(j)][static_cast<std::int64_t>(i)] = knots[j][i];
  }
  bend_number_ = integers(bend_number);
  bend_place_ = integers(bend_place);
}

MarginEffects::Found MarginEffects::of_numbers(const TableMargin& margin, const at::Tensor& rows, double radius) const {
  at::Tensor slopes = margin.weight.index_select(0, numbers_).unsqueeze(0).expand({rows.size(0), -1});
  if (!margin.gates.empty())
    slopes = slopes + at::mm(rows.index_select(1, margin.gate_columns()), margin.gated.index_select(1, numbers_));
  at::Tensor turns = at::zeros_like(knots_);
  if (margin.bends.count() > 0) turns = turns.index_put({bend_number_, bend_place_}, margin.bent / margin.bends.sizes);

  const at::Tensor values = rows.index_select(1, numbers_), rounding = explain::valid_effect::kGridRounding * move_;
  const at::Tensor low = low_ - rounding, high = high_ + rounding, outside = (values < low).logical_or(values > high);
  const at::Tensor down = outside.logical_or(values - move_ >= low), up = outside.logical_or(values + move_ <= high);
  const auto bent_at = [&](const at::Tensor& where) { return (at::relu(where.unsqueeze(2) - knots_) * turns).sum(2); };
  const at::Tensor bent = bent_at(values);
  const at::Tensor over = (slopes + (bent_at(values + move_) - bent) / move_).abs() * up,
                   under = (slopes + (bent - bent_at(values - move_)) / move_).abs() * down;
  const at::Tensor ways = up.to(at::kDouble) + down.to(at::kDouble);

  const at::Tensor reach = radius + move_;
  const at::Tensor from = at::maximum(values - reach, at::minimum(low, values - move_)).unsqueeze(2),
                   to = at::minimum(values + reach, at::maximum(high, values + move_)).unsqueeze(2);
  const at::Tensor end = at::full({knots_.size(0), 1}, margin_effects::kInfinity, at::kDouble);
  const at::Tensor met = (at::cat({-end, knots_}, 1) < to).logical_and(at::cat({knots_, end}, 1) > from);
  const at::Tensor pieces = slopes.unsqueeze(2) + at::cat({at::zeros_like(end), turns.cumsum(1)}, 1);
  const at::Tensor largest = pieces.masked_fill(met.logical_not(), -margin_effects::kInfinity).amax(2),
                   smallest = pieces.masked_fill(met.logical_not(), margin_effects::kInfinity).amin(2);
  return {.map = (over + under) / ways.clamp_min(1) * deviation_,
          .least = at::maximum(smallest, -largest) * deviation_,
          .most = at::maximum(largest, -smallest) * deviation_};
}

MarginEffects::Found MarginEffects::of_categories(const TableMargin& margin, const at::Tensor& rows, double radius) const {
  // With another level on, x changes by e_level - e_own: the margin by its gradient there, and by what two of x's columns gate.
  at::Tensor gradient = margin.weight.unsqueeze(0).expand_as(rows), both = at::zeros({}, at::kDouble), turn = both;
  if (!margin.gates.empty()) {
    const at::Tensor product = at::zeros_like(same_).index_copy(0, margin.gate_columns(), margin.gated);
    const at::Tensor pairs = product + product.t(), own = product.diagonal();
    gradient = gradient + at::mm(rows, pairs);
    both = own - at::mm(rows, pairs * same_) + at::mm(rows * own, same_);
    const at::Tensor slopes = product.index_select(1, numbers_);
    const at::Tensor distances =
        ((slopes.index_select(0, level_) - slopes.index_select(0, other_)).square().sum(1) + 1e-20).sqrt();
    turn = at::mm(rows * at::zeros_like(own).index_add(0, other_, distances), share_);
  }
  const at::Tensor changes = gradient - at::mm(rows * gradient, same_) + both;
  const at::Tensor map = at::mm(changes.abs(), share_);
  return {.map = map, .least = map - radius * turn, .most = map + radius * turn};
}

MarginEffects::Found MarginEffects::of(const TableMargin& margin, const at::Tensor& rows, double radius) const {
  const Found numbers = of_numbers(margin, rows, radius);
  const at::Tensor none = at::zeros({rows.size(0), 1}, at::kDouble);
  const bool has_categories = share_.size(1) > 0;
  const Found categories = has_categories ? of_categories(margin, rows, radius) : Found{};
  const auto in_order = [&](const at::Tensor& one, const at::Tensor& other) {
    std::vector<at::Tensor> parts{one};
    if (has_categories) parts.push_back(other);
    parts.push_back(none);
    return at::cat(parts, 1).index_select(1, order_);
  };
  return {in_order(numbers.map, categories.map), in_order(numbers.least, categories.least),
          in_order(numbers.most, categories.most)};
}

}  // namespace holdfast::train
