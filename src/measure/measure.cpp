#include "holdfast/measure/measure.h"

namespace holdfast {

ExplainTask MeasureTask::explain_task() const {
  return {.model = model, .samples = samples, .seed = seed, .memory = memory};
}

}  // namespace holdfast
