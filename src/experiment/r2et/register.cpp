#include "../experiments.h"
#include "experiments.h"

namespace holdfast {

void add_r2et_experiments(Registry<Experiment>& registry) {
  r2et::add_table1(registry);
  r2et::add_table2(registry);
  r2et::add_table3(registry);
  r2et::add_table4(registry);
  r2et::add_fig3(registry);
  r2et::add_fig4(registry);
  r2et::add_explainers(registry);
  r2et::add_cost(registry);
  r2et::add_bounds(registry);
  r2et::add_gauge(registry);
  r2et::add_beyond(registry);
  r2et::add_tradeoff(registry);
}

}  // namespace holdfast
