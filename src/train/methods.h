// The built-in objectives, recipes and optimisers; register.cpp and optimizer.cpp call these.
#pragma once

#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"

namespace holdfast {

// -log p_y of each sample, [B]: the first term of every objective.
at::Tensor cross_entropies(const at::Tensor& logits, const at::Tensor& labels);

void add_ce(Registry<Objective>& registry);
void add_est_h(Registry<Objective>& registry);
void add_exact_h(Registry<Objective>& registry);
void add_ssr(Registry<Objective>& registry);
void add_at(Registry<Objective>& registry);
void add_cl(Registry<Objective>& registry);
void add_r2et(Registry<Objective>& registry);
void add_pair_hinge(Registry<Objective>& registry);
void add_pgd(Registry<Objective>& registry);
void add_ig_norm(Registry<Objective>& registry);
void add_ig_sum_norm(Registry<Objective>& registry);
void add_steady_map(Registry<Objective>& registry);

void add_recipes(Registry<Recipe>& registry);
void add_lens_recipes(Registry<Recipe>& registry);

void add_adam(Registry<Optimizer>& registry);
void add_sgd(Registry<Optimizer>& registry);

}  // namespace holdfast
