#include "holdfast/measure/measure.h"

namespace holdfast::measure {

ExplainTask MeasureTask::explain_task() const {
  return {.model = model, .samples = samples, .seed = seed, .memory = memory};
}

}  // namespace holdfast::measure
