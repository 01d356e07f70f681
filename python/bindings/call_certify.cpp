#include "calls.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/certify.h"

namespace holdfast::python {

Json certify(const Question& question, const Trial& trial) {
  check_calls(trial);
  const Subject subject = examine_twice(question);
  Json result;
  with_advice(question,
              [&] { result = certify_subject(subject, trial, question.seed, tiles_of(question, subject.samples.layout())); });
  return result;
}

}  // namespace holdfast::python
