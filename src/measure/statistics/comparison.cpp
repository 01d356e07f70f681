// Paired comparisons and the correction of their p-values.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../nan.h"
#include "holdfast/core/error.h"
#include "holdfast/core/rng.h"
#include "holdfast/measure/statistics.h"

namespace holdfast::measure {
namespace {

constexpr int kFlips = 9999;

// Ways to sign the magnitudes whose sum is at least `limit` in size, out of 2^n: a walk over the tree of signs. A sum is made
// of n additions, whichever way the walk came to it.
double count_reaching(std::span<const double> magnitudes, double sum, double limit) {
  if (magnitudes.empty()) return std::abs(sum) >= limit ? 1 : 0;
  return count_reaching(magnitudes.subspan(1), sum + magnitudes[0], limit) +
         count_reaching(magnitudes.subspan(1), sum - magnitudes[0], limit);
}

double flipped_share(std::span<const double> magnitudes, double limit, std::uint64_t seed) {
  RandomStream stream(seed, "sign_flip");
  int met = 0;
  for (int i = 0; i < kFlips; ++i) {
    double sum = 0;
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < magnitudes.size(); ++j) {
      if (j % 32 == 0) bits = stream.bits();
      sum += (bits >> (j % 32)) & 1 ? magnitudes[j] : -magnitudes[j];
    }
    met += std::abs(sum) >= limit;
  }
  return (1.0 + met) / (1.0 + kFlips);
}

std::vector<std::size_t> ascending(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

}  // namespace

PairedComparison compare_paired(std::span<const double> first, std::span<const double> second, std::uint64_t seed) {
  HOLDFAST_CHECK(first.size() == second.size());
  std::vector<double> differences, magnitudes;
  double sum = 0, first_sum = 0, second_sum = 0, size = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double difference = first[i] - second[i];
    if (std::isnan(difference)) continue;
    differences.push_back(difference);
    first_sum += first[i], second_sum += second[i], sum += difference;
    if (difference != 0) magnitudes.push_back(std::abs(difference));
    size += std::abs(difference);
  }
  PairedComparison result;
  result.difference = mean_interval(differences, seed);
  const double count = static_cast<double>(differences.size());
  result.first = differences.empty() ? kNaN : first_sum / count;
  result.second = differences.empty() ? kNaN : second_sum / count;
  // A sum that equals the observed one may differ from it by rounding.
  const double limit = std::abs(sum) - 1e-12 * size;
  result.exact = magnitudes.size() <= static_cast<std::size_t>(kExactFlips);
  result.p_value = result.exact ? count_reaching(magnitudes, 0, limit) / std::pow(2, magnitudes.size())
                                : flipped_share(magnitudes, limit, seed);
  result.corrected = result.p_value;
  return result;
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<double> corrected(p_values.size());
  double highest = 0;
  std::size_t left = p_values.size();
  for (const std::size_t i : ascending(p_values)) {
    highest = std::max(highest, std::min(1.0, static_cast<double>(left--) * p_values[i]));
    corrected[i] = highest;
  }
  return corrected;
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  std::vector<double> corrected(p_values.size());
  const std::vector<std::size_t> order = ascending(p_values);
  double lowest = 1;
  for (std::size_t rank = order.size(); rank > 0; --rank) {
    const std::size_t i = order[rank - 1];
    lowest = std::min(lowest, p_values[i] * static_cast<double>(order.size()) / static_cast<double>(rank));
    corrected[i] = lowest;
  }
  return corrected;
}

void correct(std::span<PairedComparison> comparisons) {
  std::vector<double> p_values;
  for (const PairedComparison& comparison : comparisons) p_values.push_back(comparison.p_value);
  const std::vector<double> corrected = holm(p_values);
  for (std::size_t i = 0; i < comparisons.size(); ++i) comparisons[i].corrected = corrected[i];
}

Json to_json(const PairedComparison& comparison) {
  const Interval& difference = comparison.difference;
  return {{"first", comparison.first},
          {"second", comparison.second},
          {"difference",
           {{"mean", difference.mean}, {"low", difference.low}, {"high", difference.high}, {"count", difference.count}}},
          {"p_value", comparison.p_value},
          {"corrected", comparison.corrected},
          {"exact", comparison.exact}};
}

}  // namespace holdfast::measure
