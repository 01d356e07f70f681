#include "holdfast/metric/metric.h"

#include "holdfast/metric/top_k.h"

namespace holdfast::metric {
namespace {

// For metrics with nothing to work out beforehand: keeps a copy of the original map.
class CopiedOriginal final : public PreparedMetric {
 public:
  CopiedOriginal(const Metric& metric, const MapView& original)
      : metric_(metric), values_(original.values.begin(), original.values.end()), schema_(original.schema) {}
  double value(const MapView& perturbed) const override { return metric_.compare({values_, schema_}, perturbed); }

 private:
  const Metric& metric_;
  std::vector<double> values_;
  const Schema& schema_;
};

}  // namespace

std::unique_ptr<PreparedMetric> Metric::prepare(const MapView& original) const {
  return std::make_unique<CopiedOriginal>(*this, original);
}

bool Metric::ties_decide(const MapView& map) const {
  return top_count() && tied_at(map.values, *top_count());
}

}  // namespace holdfast::metric
