#include "numbers.h"

#include <algorithm>
#include <cmath>

#include "holdfast/measure/proportion.h"
#include "holdfast/metric/levels.h"

namespace holdfast::experiment::paper {
namespace {

// The mean over networks; nothing where it is undefined.
std::optional<double> mean_level(const std::vector<double>& levels) {
  const double mean = defined_mean(levels);
  return std::isnan(mean) ? std::nullopt : std::optional(mean);
}

std::vector<double> means_of(const BySeed& values) {
  std::vector<double> means;
  for (const std::vector<double>& samples : values) means.push_back(defined_mean(samples));
  return means;
}

template <class Level>
Numbers without_level(const Numbers& numbers, Level level_of) {
  Numbers result{.values = numbers.values, .least = -std::numeric_limits<double>::infinity(), .cells = numbers.cells};
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    for (std::size_t j = 0; j < result.values[i].size(); ++j)
      result.values[i][j] = above_level(result.values[i][j], level_of(i, j), numbers.perfect);
  }
  return result;
}

}  // namespace

std::vector<double> Numbers::means() const {
  return means_of(values);
}

Numbers one_each(std::vector<double> numbers) {
  Numbers result;
  for (const double number : numbers) result.values.push_back({number});
  return result;
}

Numbers numbers_of(std::vector<AttackedCell> cells, const std::string& call) {
  const auto metric = metrics().make(call);
  Numbers result{.least = std::min(metric->floor(), metric->perfect()), .perfect = metric->perfect()};
  for (const AttackedCell& cell : cells) {
    const MetricNumbers& numbers = cell.of(call);
    result.values.push_back(numbers.values);
    result.chance.push_back(numbers.chance);
    result.between.push_back(numbers.between);
    result.effective_sets.push_back(numbers.effective_sets);
    result.own_advantage.push_back(numbers.own_advantage);
  }
  result.cells = std::move(cells);
  return result;
}

Numbers adjusted(const Numbers& numbers) {
  return without_level(numbers, [&](std::size_t i, std::size_t j) { return numbers.chance.at(i).at(j); });
}

Numbers specific(const Numbers& numbers) {
  return without_level(numbers, [&](std::size_t i, std::size_t) { return numbers.between.at(i); });
}

Numbers lift(const Numbers& numbers) {
  Numbers result{.values = numbers.values, .least = -std::numeric_limits<double>::infinity(), .cells = numbers.cells};
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    for (double& value : result.values[i]) value -= numbers.between.at(i);
  }
  return result;
}

Numbers specific_or_zero(const Numbers& numbers) {
  Numbers result = specific(numbers);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    if (!std::isnan(numbers.between[i]) && std::isnan(above_level(0, numbers.between[i], numbers.perfect)))
      result.values[i].assign(result.values[i].size(), 0);
  }
  return result;
}

Numbers minus(const Numbers& first, const Numbers& second) {
  Numbers result{.values = first.values};
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    for (std::size_t j = 0; j < result.values[i].size(); ++j) result.values[i][j] -= second.values.at(i).at(j);
  }
  return result;
}

Numbers lowest(const std::vector<Numbers>& attacks) {
  Numbers result = attacks.front();
  for (const Numbers& other : attacks) {
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      for (std::size_t j = 0; j < result.values[i].size(); ++j) {
        double& value = result.values[i][j];
        value = std::isnan(value) ? value : std::min(value, other.values[i][j]);
      }
    }
  }
  return result;
}

Value value_of(const Numbers& numbers, std::uint64_t seed) {
  Value value = inside(plain_value(numbers, seed), numbers.least, 1);
  if (!numbers.chance.empty()) value.chance = mean_level(means_of(numbers.chance));
  if (numbers.between.empty()) return value;
  value.between = mean_level(numbers.between);
  value.specific = mean_level(specific(numbers).means());
  value.lift = mean_level(lift(numbers).means());
  value.effective_sets = mean_level(numbers.effective_sets);
  value.own_advantage = mean_level(numbers.own_advantage);
  return value;
}

Value plain_value(const Numbers& numbers, std::uint64_t seed) {
  return numbers.is_empty() ? Value{} : over_seeds(numbers.values, seed);
}

Value difference(const Numbers& first, const Numbers& second, std::uint64_t seed) {
  return difference_over_seeds(first.values, second.values, seed);
}

Value bounded_difference(const Numbers& first, const Numbers& second, std::uint64_t seed) {
  const double most = 1 - std::min(first.least, second.least);
  return inside(difference(first, second, seed), -most, most);
}

Value ratio(const Numbers& over, const Numbers& under) {
  const std::vector<double> dividends = over.means(), divisors = under.means();
  std::vector<double> ratios;
  for (std::size_t i = 0; i < divisors.size(); ++i) ratios.push_back(divisors[i] > 0 ? dividends[i] / divisors[i] : kUndefined);
  return over_seeds(ratios);
}

Value share_below(const Numbers& numbers, double limit) {
  std::vector<double> shares;
  Interval exact;
  for (const std::vector<double>& values : numbers.values) {
    const auto defined = std::ranges::count_if(values, [](double value) { return !std::isnan(value); });
    const auto below = std::ranges::count_if(values, [&](double value) { return value < limit; });
    shares.push_back(defined > 0 ? static_cast<double>(below) / static_cast<double>(defined) : kUndefined);
    if (defined > 0) exact = proportion_interval(below, defined);
  }
  if (shares.size() != 1) return share(over_seeds(shares));
  return std::isnan(shares[0]) ? Value{} : Value{.value = exact.mean, .low = exact.low, .high = exact.high, .count = exact.count};
}

Value mean_of_samples(const std::vector<std::vector<double>>& by_cell, std::uint64_t seed) {
  std::vector<double> means;
  for (std::size_t i = 0; !by_cell.empty() && i < by_cell.front().size(); ++i) {
    std::vector<double> cells;
    for (const std::vector<double>& values : by_cell) cells.push_back(values.at(i));
    means.push_back(defined_mean(cells));
  }
  return over_seeds({means}, seed);
}

Value inside(Value value, double low, double high) {
  if (value.low) value.low = std::max(*value.low, low);
  if (value.high) value.high = std::min(*value.high, high);
  return value;
}

Value share_difference(const std::vector<double>& first, const std::vector<double>& second) {
  return inside(difference_over_seeds(first, second), -1, 1);
}

Value independent_difference(const Value& first, const Value& second) {
  Value result{.value = first.value - second.value};
  if (!first.low || !first.high || !second.low || !second.high) return result;
  result.low = result.value - std::hypot(first.value - *first.low, *second.high - second.value);
  result.high = result.value + std::hypot(*first.high - first.value, second.value - *second.low);
  return result;
}

}  // namespace holdfast::experiment::paper
