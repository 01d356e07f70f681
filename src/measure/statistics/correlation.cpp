// Correlations with bootstrap intervals.
#include <algorithm>
#include <cmath>

#include "../nan.h"
#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/measure/roc.h"
#include "holdfast/measure/statistics.h"

namespace holdfast::measure {
namespace {

constexpr int kResamples = 2000;
constexpr std::size_t kFewest = 4;  // samples; with fewer, resamples are mostly degenerate

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double pearson(std::span<const double> x, std::span<const double> y) {
  const double x_mean = mean_of(x), y_mean = mean_of(y);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = x[i] - x_mean, b = y[i] - y_mean;
    xx += a * a, yy += b * b, xy += a * b;
  }
  // The mean of equal values may be off by rounding.
  const bool constant = std::all_of(x.begin(), x.end(), [&](double v) { return v == x[0]; }) ||
                        std::all_of(y.begin(), y.end(), [&](double v) { return v == y[0]; });
  return constant ? kNaN : std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0);
}

}  // namespace

double correlation(CorrelationKind kind, std::span<const double> x, std::span<const double> y) {
  if (x.size() < 2) return kNaN;
  if (kind == CorrelationKind::kPearson) return pearson(x, y);
  const std::vector<double> x_ranks = mid_ranks(x), y_ranks = mid_ranks(y);
  if (kind == CorrelationKind::kSpearman) return pearson(x_ranks, y_ranks);
  static const std::unique_ptr<Metric> kendall = metrics().make("kendall");
  const Schema schema = Schema::of(Layout::vector(static_cast<std::int64_t>(x.size())));
  return kendall->compare({x_ranks, schema}, {y_ranks, schema});
}

Correlation correlate(CorrelationKind kind, std::span<const double> x, std::span<const double> y, std::uint64_t seed) {
  HOLDFAST_CHECK(x.size() == y.size());
  std::vector<double> own_x, own_y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || std::isnan(y[i])) continue;
    own_x.push_back(x[i]);
    own_y.push_back(y[i]);
  }
  const std::size_t count = own_x.size();
  Correlation result{correlation(kind, own_x, own_y), kNaN, kNaN, static_cast<std::int64_t>(count)};
  if (std::isnan(result.value) || count < kFewest) return result;

  RandomStream stream(seed, "correlation");
  std::vector<double> drawn_x(count), drawn_y(count), values;
  for (int i = 0; i < kResamples; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      const std::size_t from = stream.below(count);
      drawn_x[j] = own_x[from], drawn_y[j] = own_y[from];
    }
    const double value = correlation(kind, drawn_x, drawn_y);
    if (!std::isnan(value)) values.push_back(value);  // a resample of equal values has none
  }
  std::sort(values.begin(), values.end());
  const auto at_share = [&](double share) {
    const double position = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
  };
  if (!values.empty()) result.low = at_share(0.025), result.high = at_share(0.975);
  return result;
}

std::vector<double> censored_times(std::span<const std::int64_t> first_swap, std::int64_t steps) {
  std::vector<double> times;
  for (const std::int64_t time : first_swap) times.push_back(static_cast<double>(time < 0 ? steps + 1 : time));
  return times;
}

}  // namespace holdfast::measure
