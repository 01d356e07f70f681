// The list of metrics, one line each: the namespace of the metric's file. `holdfast list` shows them in this order.
#include "holdfast/core/method_list.h"
#include "holdfast/metric/metric.h"

namespace holdfast::metric {

#define HOLDFAST_METRICS(METHOD)       \
  METHOD(Metric, top_k)                \
  METHOD(Metric, lens_precision)       \
  METHOD(Metric, lens_recall)          \
  METHOD(Metric, top_k_div)            \
  METHOD(Metric, lens_precision_div)   \
  METHOD(Metric, lens_recall_div)      \
  METHOD(Metric, spearman)             \
  METHOD(Metric, kendall)              \
  METHOD(Metric, lens_spearman)        \
  METHOD(Metric, lens_kendall)         \
  METHOD(Metric, lens_distance_metric) \
  METHOD(Metric, cosine)               \
  METHOD(Metric, l2)

HOLDFAST_REGISTRY(Metric, metrics, "metric", HOLDFAST_METRICS)

}  // namespace holdfast::metric
