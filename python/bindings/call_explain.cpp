#include "calls.h"
#include "holdfast/core/torch.h"

namespace holdfast::python {

ExplainedBatch explain(const Question& question, const std::string& explainer_call) {
  const std::unique_ptr<Explainer> explainer = explainers().make(explainer_call);
  const Subject subject = examine(question);
  with_advice(question, [&] { explainer->check(*subject.model); });
  ExplainedBatch batch = explain_all({.model = *subject.model,
                                      .explainer = *explainer,
                                      .schema = subject.schema,
                                      .inputs = subject.inputs,
                                      .targets = subject.targets,
                                      .sample_ids = subject.ids,
                                      .seed = question.seed,
                                      .baseline = subject.baseline,
                                      .background = subject.background,
                                      .first_logits = subject.first_logits},
                                     tiles_of(question, subject.schema.layout));
  batch.maps = scaled_maps(batch.maps, batch.log_scale);
  return batch;
}

}  // namespace holdfast::python
