#include "methods.h"

namespace holdfast {
namespace {

Registry<Metric> builtin_metrics() {
  Registry<Metric> registry("metric");
  add_top_k(registry);
  return registry;
}

}  // namespace

const Registry<Metric>& metrics() {
  static const Registry<Metric> registry = builtin_metrics();
  return registry;
}

}  // namespace holdfast
