// What the rank correlations share, with the maps as they are or smoothed over neighbourhoods first.
#pragma once

#include "chance.h"
#include "holdfast/metric/metric.h"
#include "holdfast/metric/neighborhood.h"
#include "kernels/rank_correlation.h"

namespace holdfast::metric {

// Correlation: KendallOriginal or SpearmanOriginal.
template <class Correlation>
class RankMetric : public Metric {
 public:
  // With w = 0 the maps are not smoothed.
  RankMetric(std::string name, std::int64_t w) : Metric(std::move(name)), w_(w) {}

  Direction direction() const override { return Direction::kHigherIsMoreAlike; }
  void check(const Schema&) const override {}  // every map has an order; a constant one is undefined, not wrong

  double compare(const MapView& original, const MapView& perturbed) const override {
    thread_local Prepared prepared;  // its memory is used again for the next map
    prepared.set(original, w_);
    return prepared.value(perturbed);
  }

  std::unique_ptr<PreparedMetric> prepare(const MapView& original) const override {
    auto prepared = std::make_unique<Prepared>();
    prepared->set(original, w_);
    return prepared;
  }

  // 0 by symmetry. Smoothed maps of random order still correlate where windows differ in size, as at a border: sampled.
  std::optional<double> chance(const MapView& original) const override {
    if (w_ == 0) return 0;
    Prepared prepared;
    prepared.set(original, w_);
    return sampled_chance_of_values(original, [&](std::span<const double> map) {
      return prepared.value({map, original.schema});
    });
  }
  bool chance_is_exact() const override { return w_ == 0; }

  double floor() const override { return -1; }

 private:
  class Prepared final : public PreparedMetric {
   public:
    void set(const MapView& original, std::int64_t w) {
      w_ = w;
      ranked_.clear();
      if (original.layout().kind == Layout::Kind::kTokens) {
        for (std::size_t i = 0; i < original.values.size(); ++i) {
          if (original.values[i] != 0) ranked_.push_back(i);
        }
      }
      correlation_.set(of_ranked(smoothed(original)));
    }
    double value(const MapView& perturbed) const override { return correlation_.correlation(of_ranked(smoothed(perturbed))); }

   private:
    // Padding and special tokens, whose values are 0, are not ranked.
    std::span<const double> of_ranked(std::span<const double> values) const {
      if (ranked_.empty()) return values;
      thread_local std::vector<double> result;
      result.clear();
      for (const std::size_t i : ranked_) result.push_back(values[i]);
      return result;
    }

    std::span<const double> smoothed(const MapView& map) const {
      if (w_ == 0) return map.values;
      thread_local std::vector<double> result;
      result.resize(map.values.size());
      Neighborhood(map.schema, w_).smooth(map.values, result);
      return result;
    }

    Correlation correlation_;
    std::vector<std::size_t> ranked_;
    std::int64_t w_ = 0;
  };

  std::int64_t w_;
};

}  // namespace holdfast::metric
