#include "methods.h"

namespace holdfast {
namespace {

Registry<Measure> builtin_measures() {
  Registry<Measure> registry("measure");
  add_thickness(registry);
  return registry;
}

}  // namespace

const Registry<Measure>& measures() {
  static const Registry<Measure> registry = builtin_measures();
  return registry;
}

}  // namespace holdfast
