// The list of measures, one line each: the namespace of the measure's file. `holdfast list` shows them in this order.
#include "holdfast/core/method_list.h"
#include "holdfast/measure/measure.h"

namespace holdfast::measure {

#define HOLDFAST_MEASURES(METHOD)       \
  METHOD(Measure, thickness)            \
  METHOD(Measure, thickness_bounds)     \
  METHOD(Measure, no_swap_radius)       \
  METHOD(Measure, certified_overlap)    \
  METHOD(Measure, exact_overlap)        \
  METHOD(Measure, smoothed_overlap)     \
  METHOD(Measure, curvature)            \
  METHOD(Measure, dffot)                \
  METHOD(Measure, comp_suff)            \
  METHOD(Measure, deletion_insertion)   \
  METHOD(Measure, sensitivity_measures) \
  METHOD(Measure, local_lipschitz)      \
  METHOD(Measure, relative_stability)

HOLDFAST_REGISTRY(Measure, measures, "measure", HOLDFAST_MEASURES)

}  // namespace holdfast::measure
