#include "methods.h"

namespace holdfast {
namespace {

Registry<Explainer> builtin_explainers() {
  Registry<Explainer> registry("explainer");
  add_saliency(registry);
  add_input_x_gradient(registry);
  add_integrated_gradients(registry);
  add_smooth_grad(registry);
  add_gradient_shap(registry);
  add_occlusion(registry);
  add_deep_lift(registry);
  add_lrp(registry);
  add_guided_backprop(registry);
  add_grad_cam(registry);
  return registry;
}

}  // namespace

const Registry<Explainer>& explainers() {
  static const Registry<Explainer> registry = builtin_explainers();
  return registry;
}

}  // namespace holdfast
