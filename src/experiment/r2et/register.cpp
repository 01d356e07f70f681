#include "../experiments.h"
#include "experiments.h"

namespace holdfast {

void add_r2et_experiments(Registry<Experiment>& registry) {
  r2et::add_table1(registry);
}

}  // namespace holdfast
