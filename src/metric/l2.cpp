// l2: the Euclidean distance of the two maps, each scaled to sum n, the number of features.
//     | n a / sum(a) - n b / sum(b) |_2
// A distance: 0 for maps that are the same up to scale, without a bound that does not grow with n. Undefined where a map is zero
// everywhere. The chance level, the original against its own values in random order, is sampled.
#include <cmath>
#include <limits>
#include <numeric>

#include "chance.h"
#include "holdfast/metric/metric.h"

namespace holdfast::metric::l2 {

const MethodInfo kInfo{.name = "l2",
                       .summary = "Euclidean distance of the maps, each scaled to sum n; lower is more alike",
                       .notes = "The chance level is sampled."};

// Divided before it is added, so that the sum of huge values stays finite.
double mean_of(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  return std::accumulate(values.begin(), values.end(), 0.0, [&](double sum, double value) { return sum + value / n; });
}

double distance(std::span<const double> a, std::span<const double> b) {
  const double a_mean = mean_of(a), b_mean = mean_of(b);
  if (a_mean == 0 || b_mean == 0) return std::numeric_limits<double>::quiet_NaN();
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = a[i] / a_mean - b[i] / b_mean;
    squares += difference * difference;
  }
  return std::sqrt(squares);
}

class L2 final : public Metric {
 public:
  explicit L2(const Options& options) : Metric(options.canonical()) {}

  Direction direction() const override { return Direction::kLowerIsMoreAlike; }
  Aim aim() const override { return {.at = Aim::At::kValues}; }
  void check(const Schema&) const override {}
  double compare(const MapView& original, const MapView& perturbed) const override {
    return distance(original.values, perturbed.values);
  }
  std::optional<double> chance(const MapView& original) const override {
    return sampled_chance_of_values(original, [&](std::span<const double> map) { return distance(original.values, map); });
  }
  bool chance_is_exact() const override { return false; }
  double perfect() const override { return 0; }
  double floor() const override { return std::numeric_limits<double>::infinity(); }
};

void add_to(Registry<Metric>& registry) {
  registry.add<L2>(kInfo);
}

}  // namespace holdfast::metric::l2
