// The built-in metrics, one file each.
#pragma once

#include "holdfast/metric/metric.h"

namespace holdfast {

void add_top_k(Registry<Metric>& registry);
void add_lens_precision(Registry<Metric>& registry);
void add_lens_recall(Registry<Metric>& registry);
void add_top_k_div(Registry<Metric>& registry);
void add_lens_precision_div(Registry<Metric>& registry);
void add_lens_recall_div(Registry<Metric>& registry);
void add_spearman(Registry<Metric>& registry);
void add_kendall(Registry<Metric>& registry);
void add_lens_spearman(Registry<Metric>& registry);
void add_lens_kendall(Registry<Metric>& registry);
void add_lens_distance(Registry<Metric>& registry);
void add_cosine(Registry<Metric>& registry);
void add_l2(Registry<Metric>& registry);

}  // namespace holdfast
