#include "calls.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/measure_all.h"
#include "plain_values.h"
#include "python_model.h"

namespace holdfast::python {

std::vector<Measured> measure_model(const Question& question, const MeasureChoice& choice) {
  std::vector<std::unique_ptr<Measure>> chosen;
  for (const std::string& call : choice.measures) chosen.push_back(measures().make(call));
  const std::unique_ptr<Explainer> explainer = explainers().make(choice.explainer);
  const Subject subject = examine_twice(question);
  const MeasureTask task{.model = *subject.model,
                         .explainer = *explainer,
                         .samples = subject.samples,
                         .seed = question.seed,
                         .epsilon = choice.epsilon,
                         .endpoints = choice.endpoints ? checked_batch(*choice.endpoints, "endpoints") : at::Tensor()};
  for (const std::unique_ptr<Measure>& measure : chosen) {
    with_advice(question, [&] { check_measure(*measure, task); });
  }
  std::vector<Measured> results;
  for (const std::unique_ptr<Measure>& measure : chosen) {
    const Measurement found = measure_all(*measure, task, tiles_of(question, subject.samples.layout()));
    Json summary = to_json(*measure, found, question.seed);
    summary.erase("values");
    summary.erase("parts");
    Measured measured{.summary = std::move(summary), .values = to_tensor(found.values)};
    for (const auto& [name, values] : found.parts) measured.parts.emplace_back(name, to_tensor(values));
    results.push_back(std::move(measured));
  }
  return results;
}

}  // namespace holdfast::python
