// Metrics: how alike two maps of one sample are. Free of torch; one file each.
//
// Maps come folded (Layout::fold): magnitudes, channels summed, features() values. Ties break to the lower index,
// everywhere. A map times a positive number is the same map: the scale of a map does not matter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/layout.h"
#include "holdfast/data/schema.h"

namespace holdfast::metric {

struct MapView {
  std::span<const double> values;  // schema.layout.features() of them, finite, >= 0
  const Schema& schema;

  const Layout& layout() const { return schema.layout; }
  std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
};

enum class Direction { kHigherIsMoreAlike, kLowerIsMoreAlike };

// What decides a metric's value: where an attack on it should aim.
struct Aim {
  enum class At {
    kTop,      // which features are in the top
    kNearTop,  // which of the original's top features have one of the perturbed map's near
    kTopNear,  // which of the perturbed map's top features are near one of the original's
    kOrder,    // the order of all features
    kValues,   // the values of all features
  };
  At at = At::kOrder;
  std::int64_t radius = 0;                     // of what is near
  std::optional<std::int64_t> diversity = {};  // of a diverse top
};

// A metric that is a share of top k sets: S of the original and T of the perturbed map, what is within w of a set N_w.
//     of the original:   |S & N_w(T)| / k
//     of the perturbed:  |N_w(S) & T| / k
enum class ShareOf { kOriginal, kPerturbed };
struct TopShare {
  std::int64_t k = 1;
  std::int64_t w = 0;
  ShareOf of = ShareOf::kOriginal;
};

// A metric with one original map worked out, to be held against many perturbed ones.
class PreparedMetric {
 public:
  virtual ~PreparedMetric() = default;
  // NaN where undefined (a rank correlation with a constant map).
  virtual double value(const MapView& perturbed) const = 0;
};

class Metric {
 public:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  virtual ~Metric() = default;

  virtual Direction direction() const = 0;
  // Throws kUsage when the metric does not fit maps of this schema: `top_k(k=40): the map has 30 features; choose k <= 30`.
  virtual void check(const Schema& schema) const = 0;
  virtual double compare(const MapView& original, const MapView& perturbed) const = 0;
  virtual std::unique_ptr<PreparedMetric> prepare(const MapView& original) const;

  // Mean value against a map whose features are in uniformly random order: exactly where there is a closed form, else by
  // sampling keyed by the map itself. Nothing where the metric has no such level.
  virtual std::optional<double> chance(const MapView& original) const = 0;
  virtual bool chance_is_exact() const { return true; }
  // The value of identical maps, and the value past which nothing is left to break.
  virtual double perfect() const { return 1; }
  virtual double floor() const { return 0; }
  // Positions in the original that the metric compares, for first_swap and for marking: its top k; empty if none.
  virtual std::vector<std::int64_t> top_set(const MapView& map) const {
    (void)map;
    return {};
  }
  // Whether a perfect value means that the top set is the same, so that first_swap can be read off the value.
  virtual bool perfect_means_same_top() const { return false; }
  // How many positions the top set really has, for metrics that may not find k of them (diverse sets on small maps).
  virtual std::optional<std::int64_t> found(const MapView& map) const {
    (void)map;
    return std::nullopt;
  }
  // Whether the order of equal values decided which positions are in the top set of this map.
  virtual bool ties_decide(const MapView& map) const;
  // k of the metric, for attacks that take theirs from it; nothing for metrics of whole maps.
  virtual std::optional<std::int64_t> top_count() const { return std::nullopt; }
  // Set where the metric is exactly such a share, so that it can be computed on another device.
  virtual std::optional<TopShare> top_share() const { return std::nullopt; }
  virtual Aim aim() const { return {.at = top_count() ? Aim::At::kTop : Aim::At::kOrder}; }

  const std::string& name() const { return name_; }  // canonical call with the options that identify it: "top_k(k=8)"

 private:
  std::string name_;
};

const Registry<Metric>& metrics();
Registry<Metric>& metrics_to_extend();  // for methods that are not built in

}  // namespace holdfast::metric
