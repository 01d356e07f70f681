#include "../experiments.h"
#include "experiments.h"

namespace holdfast {

void add_lens_experiments(Registry<Experiment>& registry) {
  lens::add_pictures(registry);
  lens::add_fig2(registry);
  lens::add_fig4(registry);
  lens::add_fig5(registry);
  lens::add_fig8(registry);
  lens::add_table1(registry);
  lens::add_table2(registry);
  lens::add_appendix(registry);
  lens::add_beyond(registry);
  lens::add_ablation(registry);
}

}  // namespace holdfast
