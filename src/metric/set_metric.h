// What the metrics of top sets share: S of the original and T of the perturbed map, plain or diverse, and how much of the one
// lies near the other.
//     share of the original:   |S & N_w(T)| / |S|
//     share of the perturbed:  |N_w(S) & T| / |T|
#pragma once

#include "holdfast/metric/metric.h"
#include "holdfast/metric/neighborhood.h"

namespace holdfast::metric {

struct SetMetricOptions {
  std::int64_t k = 1;
  std::int64_t w = 0;
  std::optional<std::int64_t> diversity = {};  // radius within which a diverse set has one member; none: plain top k
  ShareOf share = ShareOf::kOriginal;
};

class SetMetric : public Metric {
 public:
  SetMetric(std::string name, SetMetricOptions options) : Metric(std::move(name)), options_(options) {}

  Direction direction() const override { return Direction::kHigherIsMoreAlike; }
  void check(const Schema& schema) const override;
  double compare(const MapView& original, const MapView& perturbed) const override;
  std::unique_ptr<PreparedMetric> prepare(const MapView& original) const override;

  // Plain sets: exactly. Diverse ones: sampled.
  std::optional<double> chance(const MapView& original) const override;
  bool chance_is_exact() const override { return !options_.diversity; }

  std::vector<std::int64_t> top_set(const MapView& map) const override;
  bool perfect_means_same_top() const override { return options_.w == 0 && !options_.diversity; }
  std::optional<std::int64_t> found(const MapView& map) const override;
  bool ties_decide(const MapView& map) const override;
  std::optional<std::int64_t> top_count() const override { return options_.k; }
  std::optional<TopShare> top_share() const override {
    if (options_.diversity) return std::nullopt;
    return TopShare{.k = options_.k, .w = options_.w, .of = options_.share};
  }
  Aim aim() const override;

 private:
  SetMetricOptions options_;
};

// Throws kUsage when k is more than a map of this schema has features.
void check_k(const std::string& metric, std::int64_t k, const Schema& schema);

}  // namespace holdfast::metric
