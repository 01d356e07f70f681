#include "calls.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/certify.h"
#include "python_model.h"

namespace holdfast::python {

Json certify(const Question& question, const AttackChoice& choice) {
  const Trial trial{.explainers = {choice.explainer},
                    .attacks = {choice.attack},
                    .metrics = {choice.metric},
                    .threat = choice.threat,
                    .select = parse_select(choice.select)};
  (void)explainers().make(choice.explainer);
  (void)attacks().make(choice.attack);
  (void)metrics().make(choice.metric);
  const Subject subject = examine(question).subject;
  if (PythonModel* function = python_model(question)) function->look_twice(subject.samples.inputs);
  Json result;
  with_advice(question,
              [&] { result = certify_subject(subject, trial, question.seed, tiles_of(question, subject.samples.layout())); });
  return result;
}

}  // namespace holdfast::python
