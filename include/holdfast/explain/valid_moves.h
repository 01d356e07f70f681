// The valid changes of a row that valid_effect asks about, and what one of them does to the explained quantity.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "holdfast/data/schema.h"
#include "holdfast/explain/logit_cotangent.h"

namespace holdfast::explain::valid_effect {

inline constexpr double kMove = 0.1;           // of a deviation: the move of a number without a step
inline constexpr double kGridRounding = 1e-4;  // of a move: how far beyond its range a value may be by rounding

// The moves of one number: both ways by `move`, each counted `weight` times where the other is not valid, else half.
struct Number {
  std::int64_t column, feature;
  double low, high, move, weight;
};

struct Category {
  std::vector<std::int64_t> columns;
  std::int64_t feature;
};

// What can be changed in rows of a schema.
struct Moves {
  std::vector<Number> numbers;
  std::vector<Category> categories;
  std::int64_t features = 0;

  explicit Moves(const Schema& schema) {
    const std::vector<TableFeature> all = schema.table_features();
    features = std::ssize(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto feature = static_cast<std::int64_t>(i);
      if (all[i].is_category) {
        categories.push_back({all[i].columns, feature});
        continue;
      }
      const Feature& known = schema.features[static_cast<std::size_t>(all[i].columns[0])];
      const double deviation = known.deviation.value_or(0), move = known.step > 0 ? known.step : kMove * deviation;
      if (deviation == 0) continue;  // it never changes: no effect
      numbers.push_back({all[i].columns[0], feature, known.low, known.high, move, deviation / move});
    }
  }

  // The most rows that one row is changed to.
  std::int64_t most() const {
    std::int64_t count = 2 * std::ssize(numbers);
    for (const Category& category : categories) count += std::ssize(category.columns) - 1;
    return count;
  }
};

// Calls on_number(number, move, weight) and on_category(category, level, weight) for every valid change of a row. A number
// outside its range already may move both ways.
template <class Scalar, class OnNumber, class OnCategory>
void for_each_change(const Moves& moves, const Scalar* row, const OnNumber& on_number, const OnCategory& on_category) {
  for (const Number& number : moves.numbers) {
    const double value = static_cast<double>(row[number.column]), rounding = kGridRounding * number.move;
    const double low = number.low - rounding, high = number.high + rounding;
    const bool outside = value < low || value > high;
    const bool down = outside || value - number.move >= low, up = outside || value + number.move <= high;
    const double weight = down && up ? number.weight / 2 : number.weight;
    if (down) on_number(number, -number.move, weight);
    if (up) on_number(number, number.move, weight);
  }
  for (const Category& category : moves.categories) {
    const auto now = std::ranges::max_element(category.columns, {}, [&](std::int64_t column) { return row[column]; });
    const double weight = 1.0 / static_cast<double>(category.columns.size() - 1);
    for (const std::int64_t level : category.columns) {
      if (level != *now) on_category(category, level, weight);
    }
  }
}

// f(moved) - f(clean) from their log-odds.
inline double plain_difference(double moved, double clean, ExplainedQuantity quantity) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto softplus = [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); };
  if (quantity == ExplainedQuantity::kLogit) return moved - clean;
  if (quantity == ExplainedQuantity::kCrossEntropy) return softplus(-moved) - softplus(-clean);
  return moved + clean > 0 ? sigmoid(-clean) - sigmoid(-moved) : sigmoid(moved) - sigmoid(clean);
}

// The derivative of plain_difference() by `moved`; minus that by `clean` where both are the same.
inline double slope_at(double odds, ExplainedQuantity quantity) {
  if (quantity == ExplainedQuantity::kLogit) return 1;
  const double p = 1 / (1 + std::exp(-odds));
  return quantity == ExplainedQuantity::kCrossEntropy ? p - 1 : p * (1 - p);
}

}  // namespace holdfast::explain::valid_effect
