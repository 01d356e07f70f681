// The lists of objectives and optimisers, one line each: the namespace of the method's file. `holdfast list` shows
// them in this order.
#include "holdfast/core/method_list.h"
#include "holdfast/train/objective.h"
#include "holdfast/train/optimizer.h"

namespace holdfast::train {

#define HOLDFAST_OBJECTIVES(METHOD) \
  METHOD(Objective, ce)             \
  METHOD(Objective, est_h)          \
  METHOD(Objective, exact_h)        \
  METHOD(Objective, ssr)            \
  METHOD(Objective, at_objective)   \
  METHOD(Objective, cl)             \
  METHOD(Objective, r2et_objective) \
  METHOD(Objective, pair_hinge)     \
  METHOD(Objective, convex)         \
  METHOD(Objective, own_top)        \
  METHOD(Objective, pgd)            \
  METHOD(Objective, ig_norm)        \
  METHOD(Objective, ig_sum_norm)    \
  METHOD(Objective, steady_map)

HOLDFAST_REGISTRY(Objective, objectives, "objective", HOLDFAST_OBJECTIVES)

#define HOLDFAST_OPTIMIZERS(METHOD) \
  METHOD(Optimizer, adam)           \
  METHOD(Optimizer, sgd)

HOLDFAST_REGISTRY(Optimizer, optimizers, "optimizer", HOLDFAST_OPTIMIZERS)

}  // namespace holdfast::train
