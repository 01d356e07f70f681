#include "holdfast/measure/measure.h"

namespace holdfast {

ExplainTask MeasureTask::explain_task() const {
  return {.model = model,
          .inputs = inputs,
          .targets = targets,
          .sample_ids = sample_ids,
          .seed = seed,
          .schema = &schema,
          .baseline = baseline,
          .background = background,
          .memory = memory};
}

}  // namespace holdfast
