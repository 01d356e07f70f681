#include "calls.h"

#include <algorithm>
#include <functional>

#include "holdfast/attack/threat.h"
#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/experiment/cell_facts.h"
#include "plain_values.h"
#include "python_model.h"

namespace holdfast::python {
namespace {

// Attacks skip what is not finite on their way; the clean inputs must be.
void check_logits(const at::Tensor& logits) {
  if (all_finite(logits)) return;
  const at::Tensor bad = at::isfinite(logits).logical_not().any(1);
  input_error("the model: the logits of sample {} are not finite", bad.nonzero()[0].item<std::int64_t>());
}

template <class Number>
at::Tensor column(const std::vector<SampleOutcome>& samples, Number SampleOutcome::*field) {
  at::Tensor values = at::empty({static_cast<std::int64_t>(samples.size())}, c10::CppTypeToScalarType<Number>::value);
  std::transform(samples.begin(), samples.end(), values.template mutable_data_ptr<Number>(), std::mem_fn(field));
  return values;
}

void add_outcomes(Attacked& out, const std::vector<SampleOutcome>& samples) {
  out.value = column(samples, &SampleOutcome::value);
  out.margin = column(samples, &SampleOutcome::margin);
  out.clean_margin = column(samples, &SampleOutcome::clean_margin);
  out.first_swap = column(samples, &SampleOutcome::first_swap);
  out.label_flips = column(samples, &SampleOutcome::label_flips);
  out.evaluations = column(samples, &SampleOutcome::evaluations);
  out.iteration = column(samples, &SampleOutcome::iteration);
  out.projections = column(samples, &SampleOutcome::projections);
  out.non_finite = column(samples, &SampleOutcome::non_finite);
  out.no_gradient = column(samples, &SampleOutcome::no_gradient);
  out.late_gain = column(samples, &SampleOutcome::late_gain);
  for (const SampleOutcome& sample : samples) {
    out.component.push_back(sample.component);
    out.trace.push_back(sample.trace);
  }
}

std::string assessed(const Metric& metric, const CellResult& result, const Schema& schema, std::uint64_t seed) {
  const MapBatch clean = fold_maps(result.original_maps, schema);
  const MapBatch moved = fold_maps(result.moved_maps, schema);
  const Levels levels = compute_levels(metric, clean, to_vector(result.targets), {.seed = seed});
  const Assessment assessment = assess(metric, clean, moved, levels, seed);
  warn_of_ties(assessment);
  return summary_of(assessment);
}

Json with_seconds(const CellResult& result) {
  Json components = components_json(result);
  for (std::size_t i = 0; i < components.size(); ++i) components[i]["seconds"] = result.components[i].seconds;
  return components;
}

Select parse_select(const std::string& text) {
  if (text == "worst") return Select::kWorst;
  if (text == "last") return Select::kLast;
  usage_error("select: '{}' must be worst or last", text);
}

ThreatModel threat_of(const ThreatChoice& choice, const Schema& schema) {
  return ThreatModel::make(parse_norm(choice.norm), choice.epsilon, choice.box, schema,
                           {.valid = choice.valid,
                            .sides = parse_sides(choice.sides),
                            .negative_weights = choice.negative_weights,
                            .tolerance = choice.tolerance});
}

}  // namespace

Attacked attack(const Question& question, const AttackChoice& choice) {
  const std::unique_ptr<Explainer> explainer = explainers().make(choice.explainer);
  const std::unique_ptr<Attack> attack = attacks().make(choice.attack);
  const std::unique_ptr<Metric> metric = metrics().make(choice.metric);
  const Select select = parse_select(choice.select);
  Subject subject = examine(question);
  if (PythonModel* function = python_model(question)) function->look_twice(subject.inputs);
  const ThreatModel threat = threat_of(choice.threat, subject.schema);
  check_data({.name = "inputs",
              .inputs = subject.inputs,
              .schema = subject.schema,
              .trial = {.metrics = {choice.metric}, .box = threat.box}});
  const TileOptions tiles = tiles_of(question, subject.schema.layout);
  const at::Tensor logits = predict(*subject.model, subject.inputs, subject.schema.layout, tiles);
  check_logits(logits);
  if (!subject.targets.defined()) subject.targets = predicted_class(logits);

  const CellTask task{.model = *subject.model,
                      .explainer = *explainer,
                      .attack = *attack,
                      .metric = *metric,
                      .threat = threat,
                      .schema = subject.schema,
                      .inputs = subject.inputs,
                      .targets = subject.targets,
                      .sample_ids = subject.ids,
                      .seed = question.seed,
                      .baseline = subject.baseline,
                      .background = subject.background,
                      .select = select,
                      .trace = choice.trace};
  with_advice(question, [&] { check_cell(task); });
  const CellResult result = run_cell(task, tiles);
  warn_of_no_gradient(result, attack->name());
  Attacked out{.perturbed = result.perturbed,
               .original_maps = scaled_maps(result.original_maps, result.original_scale),
               .perturbed_maps = scaled_maps(result.moved_maps, result.moved_scale),
               .logits = result.logits,
               .perturbed_logits = result.moved_logits,
               .targets = result.targets,
               .prediction = predicted_class(result.logits),
               .prediction_after = predicted_class(result.moved_logits),
               .norm = threat.distance(result.perturbed, subject.inputs.to(result.perturbed.options())),
               .metric = metric->name(),
               .attack = attack->name(),
               .explainer = explainer->name(),
               .select = to_string(attack->selects(select)),
               .summary = assessed(*metric, result, subject.schema, question.seed),
               .components = with_seconds(result).dump()};
  add_outcomes(out, result.samples);
  return out;
}

}  // namespace holdfast::python
