// The list of explainers, one line each: the namespace of the explainer's file. `holdfast list` shows them in this order.
#include "holdfast/core/method_list.h"
#include "holdfast/explain/explainer.h"

namespace holdfast::explain {

#define HOLDFAST_EXPLAINERS(METHOD)       \
  METHOD(Explainer, saliency)             \
  METHOD(Explainer, input_x_gradient)     \
  METHOD(Explainer, integrated_gradients) \
  METHOD(Explainer, smooth_grad)          \
  METHOD(Explainer, smooth_top)           \
  METHOD(Explainer, gradient_shap)        \
  METHOD(Explainer, occlusion)            \
  METHOD(Explainer, valid_effect)         \
  METHOD(Explainer, shapley)              \
  METHOD(Explainer, deep_lift)            \
  METHOD(Explainer, lrp)                  \
  METHOD(Explainer, guided_backprop)      \
  METHOD(Explainer, grad_cam)

HOLDFAST_REGISTRY(Explainer, explainers, "explainer", HOLDFAST_EXPLAINERS)

}  // namespace holdfast::explain
