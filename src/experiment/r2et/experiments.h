// One function an experiment, in the order of `list`.
#pragma once

#include "holdfast/experiment/reproduce.h"

namespace holdfast::r2et {

void add_table1(Registry<Experiment>& registry);
void add_table2(Registry<Experiment>& registry);
void add_table3(Registry<Experiment>& registry);
void add_table4(Registry<Experiment>& registry);
void add_fig3(Registry<Experiment>& registry);
void add_fig4(Registry<Experiment>& registry);
void add_explainers(Registry<Experiment>& registry);
void add_cost(Registry<Experiment>& registry);
void add_bounds(Registry<Experiment>& registry);
void add_gauge(Registry<Experiment>& registry);
void add_beyond(Registry<Experiment>& registry);
void add_tradeoff(Registry<Experiment>& registry);

}  // namespace holdfast::r2et
