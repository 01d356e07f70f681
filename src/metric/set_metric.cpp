#include "set_metric.h"

#include "chance.h"
#include "holdfast/metric/diverse.h"
#include "holdfast/metric/top_k.h"

namespace holdfast::metric {
namespace {

// Fills `set` with the top set of a map and gives its size.
std::int64_t choose(const MapView& map, const SetMetricOptions& options, FeatureSet& set) {
  if (options.diversity) return diverse_top_k(map.values, options.k, Neighborhood(map.schema, *options.diversity), set);
  Neighborhood(map.schema, 0).reset(set);
  top_k_bits(map.values, options.k, set);
  return options.k;
}

// Says which of the two sets is grown: the original's, or the perturbed one's.
bool grows_original(const SetMetricOptions& options) {
  return options.share == ShareOf::kPerturbed;
}

// `original` is grown already where it has to be; `perturbed` is grown here.
double share(const SetMetricOptions& options, const Schema& schema, const FeatureSet& original, std::int64_t original_size,
             FeatureSet& perturbed, std::int64_t perturbed_size) {
  if (!grows_original(options)) Neighborhood(schema, options.w).grow(perturbed);
  const std::int64_t size = options.share == ShareOf::kOriginal ? original_size : perturbed_size;
  return static_cast<double>(original.common(perturbed)) / static_cast<double>(size);
}

class PreparedSet final : public PreparedMetric {
 public:
  PreparedSet() = default;
  void set(const MapView& original, const SetMetricOptions& options) {
    options_ = options;
    size_ = choose(original, options, set_);
    if (grows_original(options)) Neighborhood(original.schema, options.w).grow(set_);
  }

  double value(const MapView& perturbed) const override {
    thread_local FeatureSet moved;
    const std::int64_t size = choose(perturbed, options_, moved);
    return share(options_, perturbed.schema, set_, size_, moved, size);
  }

  double value_of_order(std::span<const std::uint32_t> order, const Schema& schema) const {
    FeatureSet moved;
    const std::int64_t size = pick_apart(order, options_.k, Neighborhood(schema, *options_.diversity), moved);
    return share(options_, schema, set_, size_, moved, size);
  }

  const FeatureSet& members() const { return set_; }

 private:
  SetMetricOptions options_;
  FeatureSet set_;
  std::int64_t size_ = 0;
};

}  // namespace

void check_k(const std::string& metric, std::int64_t k, const Schema& schema) {
  const std::int64_t features = schema.layout.features();
  if (k > features) usage_error("{}: the map has {} features; choose k <= {}", metric, features, features);
}

void SetMetric::check(const Schema& schema) const {
  check_k(name(), options_.k, schema);
}

double SetMetric::compare(const MapView& original, const MapView& perturbed) const {
  thread_local PreparedSet prepared;  // its memory is used again for the next map
  prepared.set(original, options_);
  return prepared.value(perturbed);
}

std::unique_ptr<PreparedMetric> SetMetric::prepare(const MapView& original) const {
  auto prepared = std::make_unique<PreparedSet>();
  prepared->set(original, options_);
  return prepared;
}

std::optional<double> SetMetric::chance(const MapView& original) const {
  PreparedSet prepared;
  prepared.set(original, options_);
  if (options_.diversity) {
    return sampled_chance(original,
                          [&](std::span<const std::uint32_t> order) { return prepared.value_of_order(order, original.schema); });
  }
  // A random T hits each feature of N_w(S) with probability k/n, so recall's chance is |N_w(S)|/n.
  if (grows_original(options_)) return static_cast<double>(prepared.members().count()) / static_cast<double>(original.size());
  return chance_of_being_near(prepared.members(), Neighborhood(original.schema, options_.w), options_.k);
}

Aim SetMetric::aim() const {
  const Aim::At near = options_.share == ShareOf::kOriginal ? Aim::At::kNearTop : Aim::At::kTopNear;
  return {.at = options_.w == 0 ? Aim::At::kTop : near, .radius = options_.w, .diversity = options_.diversity};
}

std::vector<std::int64_t> SetMetric::top_set(const MapView& map) const {
  FeatureSet set;
  choose(map, options_, set);
  return set.members();
}

std::optional<std::int64_t> SetMetric::found(const MapView& map) const {
  if (!options_.diversity) return std::nullopt;
  FeatureSet set;
  return choose(map, options_, set);
}

bool SetMetric::ties_decide(const MapView& map) const {
  if (!options_.diversity) return tied_at(map.values, options_.k);
  return diverse_ties_decide(map.values, options_.k, Neighborhood(map.schema, *options_.diversity));
}

}  // namespace holdfast::metric
