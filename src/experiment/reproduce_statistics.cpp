#include "holdfast/experiment/reproduce_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace holdfast::experiment {
namespace {

constexpr double kUsualLevel = 0.95;
thread_local double current_level = kUsualLevel;

// How probable it is that Student's t is between -t and t: a finite sum for whole degrees of freedom (Abramowitz & Stegun 26.7.3
// and 26.7.4).
double student_inside(double t, std::size_t freedom) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom))), cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (std::size_t i = odd ? 3 : 2; i <= freedom; i += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(i - 1) / static_cast<double>(i);
  }
  return odd ? (angle + std::sin(angle) * sum) * 2 / M_PI : std::sin(angle) * sum;
}

// Between minus this and this Student's t is with the probability `inside`. The table has the usual level's three digits, with
// which the kept results were made.
double student_quantile(std::size_t freedom, double inside) {
  static constexpr std::array<double, 30> kTable{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (freedom <= kTable.size() && inside == kUsualLevel) return kTable[freedom - 1];
  double low = 0, high = 1e4;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_inside(middle, freedom) < inside ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::vector<double> defined(std::span<const double> values) {
  std::vector<double> result;
  for (const double value : values) {
    if (!std::isnan(value)) result.push_back(value);
  }
  return result;
}

Value from_interval(const Interval& interval) {
  Value value{.value = interval.mean, .count = interval.count};
  if (interval.count > 1) {
    value.low = interval.low;
    value.high = interval.high;
  }
  return value;
}

}  // namespace

IntervalLevel::IntervalLevel(double of) : before_(std::exchange(current_level, of)) {
  HOLDFAST_CHECK(of > 0 && of < 1);
}

IntervalLevel::~IntervalLevel() {
  current_level = before_;
}

double interval_level() {
  return current_level;
}

double defined_mean(std::span<const double> values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? std::nan("") : sum / static_cast<double>(count);
}

Value over_seeds(std::span<const double> per_seed) {
  const std::vector<double> values = defined(per_seed);
  const double mean = defined_mean(values);
  Value result{.value = mean, .count = static_cast<std::int64_t>(values.size())};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double freedom = static_cast<double>(values.size() - 1);
  const double half =
      student_quantile(values.size() - 1, current_level) * std::sqrt(squares / freedom / static_cast<double>(values.size()));
  result.low = mean - half;
  result.high = mean + half;
  return result;
}

Value over_seeds(const std::vector<std::vector<double>>& samples_by_seed, std::uint64_t seed) {
  if (samples_by_seed.size() == 1) return from_interval(mean_interval(samples_by_seed.front(), seed));
  std::vector<double> means;
  for (const std::vector<double>& samples : samples_by_seed) means.push_back(defined_mean(samples));
  return over_seeds(means);
}

Value difference_over_seeds(const std::vector<std::vector<double>>& first, const std::vector<std::vector<double>>& second,
                            std::uint64_t seed) {
  HOLDFAST_CHECK(first.size() == second.size());
  if (first.size() == 1) return from_interval(compare_paired(first[0], second[0], seed).difference);
  std::vector<double> differences;
  for (std::size_t i = 0; i < first.size(); ++i) differences.push_back(defined_mean(first[i]) - defined_mean(second[i]));
  return over_seeds(differences);
}

Value difference_over_seeds(std::span<const double> first, std::span<const double> second) {
  HOLDFAST_CHECK(first.size() == second.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < first.size(); ++i) differences.push_back(first[i] - second[i]);
  return over_seeds(differences);
}

Value share(Value value) {
  if (value.low) value.low = std::max(*value.low, 0.0);
  if (value.high) value.high = std::min(*value.high, 1.0);
  return value;
}

}  // namespace holdfast::experiment
