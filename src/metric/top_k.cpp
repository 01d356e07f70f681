// top_k: the share of the original's top k that is still in the perturbed map's top k (P@k, top-k intersection).
//     |S & T| / k          S, T: top k of the original and of the perturbed map
// Ghorbani, Abid, Zou, "Interpretation of Neural Networks Is Fragile", AAAI 2019. A random map keeps k/n of it.
#include "holdfast/metric/top_k.h"

#include "set_metric.h"

namespace holdfast::metric::top_k {

const MethodInfo kInfo{.name = "top_k",
                       .summary = "share of the original's top k that is still in the perturbed map's top k",
                       .citation = "Ghorbani, Abid, Zou, Interpretation of Neural Networks Is Fragile, AAAI 2019",
                       .options = {{"k", 8, at_least(1), "features compared"}}};

class PreparedTopK final : public PreparedMetric {
 public:
  PreparedTopK(const MapView& original, std::int64_t k) : set_(original.values, k), k_(static_cast<double>(k)) {}
  double value(const MapView& perturbed) const override { return static_cast<double>(set_.overlap(perturbed.values)) / k_; }

 private:
  TopSet set_;
  double k_;
};

class TopK final : public Metric {
 public:
  explicit TopK(const Options& options) : Metric(options.complete()), k_(options.integer("k")) {}

  Direction direction() const override { return Direction::kHigherIsMoreAlike; }

  void check(const Schema& schema) const override { check_k(name(), k_, schema); }

  // One pair of maps is compared faster as bits; TopSet pays when one original meets many maps.
  double compare(const MapView& original, const MapView& perturbed) const override {
    thread_local FeatureSet first, second;  // their memory is used again for the next maps
    for (const auto& [set, map] : {std::pair{&first, &original}, std::pair{&second, &perturbed}}) {
      set->reset(1, map->size());
      top_k_bits(map->values, k_, *set);
    }
    return static_cast<double>(first.common(second)) / static_cast<double>(k_);
  }

  std::unique_ptr<PreparedMetric> prepare(const MapView& original) const override {
    return std::make_unique<PreparedTopK>(original, k_);
  }

  // Each member of S is in a random T with probability k/n.
  std::optional<double> chance(const MapView& original) const override {
    return static_cast<double>(k_) / static_cast<double>(original.size());
  }

  std::vector<std::int64_t> top_set(const MapView& map) const override { return top_k_set(map.values, k_); }
  bool perfect_means_same_top() const override { return true; }
  std::optional<std::int64_t> top_count() const override { return k_; }
  std::optional<TopShare> top_share() const override { return TopShare{.k = k_}; }

 private:
  std::int64_t k_;
};

void add_to(Registry<Metric>& registry) {
  registry.add<TopK>(kInfo);
}

}  // namespace holdfast::metric::top_k
