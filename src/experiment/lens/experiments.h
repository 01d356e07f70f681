// The experiments of "Rethinking Robustness of Model Attributions"; register.cpp calls these.
#pragma once

#include "holdfast/experiment/reproduce.h"

namespace holdfast::lens {

inline constexpr const char* kPaper = "Kamath et al., Rethinking Robustness of Model Attributions, AAAI 2024";

void add_pictures(Registry<Experiment>& registry);  // lens/fig1, fig3, fig6, fig7
void add_fig2(Registry<Experiment>& registry);
void add_fig4(Registry<Experiment>& registry);
void add_fig5(Registry<Experiment>& registry);
void add_fig8(Registry<Experiment>& registry);
void add_table1(Registry<Experiment>& registry);
void add_table2(Registry<Experiment>& registry);
void add_appendix(Registry<Experiment>& registry);
void add_beyond(Registry<Experiment>& registry);
void add_ablation(Registry<Experiment>& registry);

}  // namespace holdfast::lens
