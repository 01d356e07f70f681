// The built-in explainers, one file each.
#pragma once

#include "holdfast/explain/explainer.h"

namespace holdfast {

void add_gradient_shap(Registry<Explainer>& registry);
void add_input_x_gradient(Registry<Explainer>& registry);
void add_integrated_gradients(Registry<Explainer>& registry);
void add_occlusion(Registry<Explainer>& registry);
void add_saliency(Registry<Explainer>& registry);
void add_smooth_grad(Registry<Explainer>& registry);
void add_deep_lift(Registry<Explainer>& registry);
void add_lrp(Registry<Explainer>& registry);
void add_guided_backprop(Registry<Explainer>& registry);
void add_grad_cam(Registry<Explainer>& registry);

}  // namespace holdfast
