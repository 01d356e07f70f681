#include "calls.h"

#include <algorithm>
#include <functional>
#include <type_traits>

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/cell_facts.h"
#include "plain_values.h"

namespace holdfast::python {
namespace {

// Attacks skip what is not finite on their way; the clean inputs must be.
void check_logits(const at::Tensor& logits) {
  if (all_finite(logits)) return;
  const at::Tensor bad = at::isfinite(logits).logical_not().any(1);
  input_error("the model: the logits of sample {} are not finite", bad.nonzero()[0].item<std::int64_t>());
}

// Every field that is a number, as a column.
std::map<std::string, at::Tensor> columns_of(const std::vector<SampleOutcome>& samples) {
  std::map<std::string, at::Tensor> columns;
  for_each_field([&]<class Value>(const char* name, Value SampleOutcome::*field) {
    if constexpr (std::is_arithmetic_v<Value>) {
      at::Tensor values = at::empty({static_cast<std::int64_t>(samples.size())}, c10::CppTypeToScalarType<Value>::value);
      std::transform(samples.begin(), samples.end(), values.template mutable_data_ptr<Value>(), std::mem_fn(field));
      columns[name] = values;
    }
  });
  return columns;
}

}  // namespace

Attacked attack(const Question& question, const Trial& trial, bool trace, bool random_points) {
  check_calls(trial);
  Subject subject = examine_twice(question);
  Samples& samples = subject.samples;
  check_samples("inputs", samples, trial);
  const TileOptions tiles = tiles_of(question, samples.layout());
  const at::Tensor logits = predict(*subject.model, samples.inputs, samples.layout(), tiles);
  check_logits(logits);
  if (!samples.targets.defined()) samples.targets = predicted_class(logits);

  std::vector<Cell> cells;
  with_advice(question, [&] { cells = make_cells(subject, trial, question.seed, trace); });
  const Row row = Grid({.tiles = tiles, .random_points = random_points}).run(cells.front());
  warn_if_beaten(row);
  const CellResult& result = row.result;
  Attacked out{.perturbed = result.perturbed,
               .original_maps = scaled_maps(result.original_maps, result.original_scale),
               .perturbed_maps = scaled_maps(result.perturbed_maps, result.perturbed_scale),
               .logits = result.logits,
               .perturbed_logits = result.perturbed_logits,
               .columns = columns_of(result.samples),
               .metric = row.cell.metric->name(),
               .attack = row.cell.attack->name(),
               .explainer = row.cell.explainer->name(),
               .select = to_string(row.cell.attack->selects(row.cell.select)),
               .summary = summary_of(row.assessment),
               .random = row.random ? to_json(*row.random) : Json(),
               .components = components_json(result, /*with_seconds=*/true)};
  for (const SampleOutcome& sample : result.samples) {
    out.component.push_back(sample.component);
    out.trace.push_back(sample.trace);
  }
  return out;
}

}  // namespace holdfast::python
