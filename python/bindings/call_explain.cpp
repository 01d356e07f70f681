#include "calls.h"
#include "holdfast/core/torch.h"

namespace holdfast::python {

ExplainedBatch explain(const Question& question, const std::string& explainer_call) {
  const std::unique_ptr<Explainer> explainer = explainers().make(explainer_call);
  const auto [subject, first_logits] = examine(question);
  with_advice(question, [&, &model = *subject.model] { explainer->check(model); });
  ExplainedBatch batch = explain_all(*explainer, {.model = *subject.model, .samples = subject.samples, .seed = question.seed},
                                     tiles_of(question, subject.samples.layout()), /*progress=*/nullptr, first_logits);
  batch.maps = scaled_maps(batch.maps, batch.log_scale);
  return batch;
}

}  // namespace holdfast::python
