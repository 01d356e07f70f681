#include "methods.h"

namespace holdfast {
namespace {

Registry<Metric> builtin_metrics() {
  Registry<Metric> registry("metric");
  add_top_k(registry);
  add_lens_precision(registry);
  add_lens_recall(registry);
  add_top_k_div(registry);
  add_lens_precision_div(registry);
  add_lens_recall_div(registry);
  add_spearman(registry);
  add_kendall(registry);
  add_lens_spearman(registry);
  add_lens_kendall(registry);
  add_lens_distance(registry);
  add_cosine(registry);
  add_l2(registry);
  return registry;
}

}  // namespace

const Registry<Metric>& metrics() {
  static const Registry<Metric> registry = builtin_metrics();
  return registry;
}

}  // namespace holdfast
