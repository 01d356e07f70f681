#include "calls.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/certify.h"
#include "python_model.h"

namespace holdfast::python {

Json certify(const Question& question, const AttackChoice& choice) {
  const Trial trial = trial_of(choice);
  const Subject subject = examine(question).subject;
  if (PythonModel* function = python_model(question)) function->look_twice(subject.samples.inputs);
  Json result;
  with_advice(question,
              [&] { result = certify_subject(subject, trial, question.seed, tiles_of(question, subject.samples.layout())); });
  return result;
}

}  // namespace holdfast::python
