#include "methods.h"

namespace holdfast {
namespace {

Registry<Explainer> builtin_explainers() {
  Registry<Explainer> registry("explainer");
  add_saliency(registry);
  return registry;
}

}  // namespace

const Registry<Explainer>& explainers() {
  static const Registry<Explainer> registry = builtin_explainers();
  return registry;
}

}  // namespace holdfast
