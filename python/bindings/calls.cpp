#include "calls.h"

#include <algorithm>

#include "holdfast/attack/threat.h"
#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/experiment/measure_all.h"
#include "holdfast/metric/compare.h"
#include "holdfast/metric/levels.h"
#include "python_model.h"

namespace holdfast::python {
namespace {

// Python's functions run on one thread, each call with overhead of its own: small samples go in larger tiles.
constexpr std::int64_t kSmallSample = 512;
constexpr std::int64_t kPythonTile = 1024;

PythonModel* python_model(const Question& question) {
  return dynamic_cast<PythonModel*>(question.model.get());
}

TileOptions tiles_of(const Question& question, const Layout& layout) {
  const bool enlarge = question.tile == 0 && python_model(question) != nullptr && layout.inputs() <= kSmallSample;
  return {.size = enlarge ? kPythonTile : question.tile, .threads = question.threads};
}

// Layers of a Python model cannot be seen, but there is a way to show them: what a check says about them is completed.
template <class Check>
void with_advice(const Question& question, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (python_model(question) == nullptr || message.find("layers") == std::string::npos) throw;
    throw Error(error.kind(), message + "; holdfast.load_model(module, example=inputs) shows the layers of a torch module");
  }
}

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
  for (const SampleOutcome& sample : samples) {
    out.component.push_back(sample.component);
    out.trace.push_back(sample.trace);
  }
}

at::Tensor to_tensor(const std::vector<double>& values) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble);
}

std::vector<std::int64_t> to_vector(const at::Tensor& labels) {
  return {labels.const_data_ptr<std::int64_t>(), labels.const_data_ptr<std::int64_t>() + labels.numel()};
}

std::string summary_of(const Assessment& assessment) {
  Json json = to_json(assessment);
  json.erase("values");
  return dump_json(json);
}

// One map after the other, without the levels: for large batches and loops.
std::vector<Compared> compared_alone(const std::vector<std::unique_ptr<Metric>>& chosen, const at::Tensor& original,
                                     const at::Tensor& perturbed, const Schema& schema) {
  const at::ScalarType type =
      original.scalar_type() == at::kFloat && perturbed.scalar_type() == at::kFloat ? at::kFloat : at::kDouble;
  const at::Tensor first = original.to(type).contiguous(), second = perturbed.to(type).contiguous();
  const auto count = static_cast<std::size_t>(first.numel());
  std::vector<Compared> results;
  for (const std::unique_ptr<Metric>& metric : chosen) {
    AT_DISPATCH_FLOATING_TYPES(type, "measure", [&] {
      const std::span<const scalar_t> a(first.const_data_ptr<scalar_t>(), count), b(second.const_data_ptr<scalar_t>(), count);
      const std::vector<double> values = compare_maps(*metric, schema, a, b);
      double sum = 0;
      std::int64_t defined = 0;
      for (const double value : values) {
        if (std::isnan(value)) continue;
        sum += value;
        ++defined;
      }
      const auto undefined = static_cast<std::int64_t>(values.size()) - defined;
      const Json mean = defined == 0 ? Json() : Json(sum / static_cast<double>(defined));
      results.push_back({dump_json({{"name", metric->name()}, {"mean", mean}, {"count", defined}, {"undefined", undefined}}),
                         to_tensor(values)});
    });
  }
  return results;
}

std::string assessed(const Metric& metric, const CellResult& result, const Schema& schema, std::uint64_t seed) {
  const MapBatch clean = fold_maps(result.original_maps, schema);
  const MapBatch moved = fold_maps(result.moved_maps, schema);
  const Baseline levels = baseline(metric, clean, to_vector(result.targets), {.seed = seed});
  const Assessment assessment = assess(metric, clean, moved, levels, seed);
  warn_of_ties(assessment);
  return summary_of(assessment);
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

// Maps in the precision that the command line reads them in: integers and float64 as float64, others as float32.
at::Tensor checked_maps(const at::Tensor& maps, const std::string& what) {
  const at::Tensor plain = checked_batch(maps, what);
  const bool fits_float = plain.is_floating_point() && plain.scalar_type() != at::kDouble;
  return plain.to(at::TensorOptions().device(at::kCPU).dtype(fits_float ? at::kFloat : at::kDouble));
}

}  // namespace

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
                                      .background = subject.background},
                                     tiles_of(question, subject.schema.layout));
  batch.maps = scaled_maps(batch.maps, batch.log_scale);
  return batch;
}

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
               .summary = assessed(*metric, result, subject.schema, question.seed)};
  add_outcomes(out, result.samples);
  return out;
}

std::vector<Compared> measure(const at::Tensor& original, const at::Tensor& perturbed, const std::vector<std::string>& calls,
                              const std::optional<Schema>& given, const std::optional<at::Tensor>& labels, std::uint64_t seed,
                              bool levels) {
  std::vector<std::unique_ptr<Metric>> chosen;
  for (const std::string& call : calls) chosen.push_back(metrics().make(call));
  const at::Tensor first = checked_maps(original, "original"), second = checked_maps(perturbed, "perturbed");
  if (first.sizes() != second.sizes()) {
    input_error("the original maps have shape {}, but the perturbed ones have shape {}", to_string(first.sizes().vec()),
                to_string(second.sizes().vec()));
  }
  const Schema schema = schema_for(given, nullptr, first, "original");
  for (const std::unique_ptr<Metric>& metric : chosen) metric->check(schema);
  if (!levels) return compared_alone(chosen, first, second, schema);
  std::vector<std::int64_t> classes;
  if (labels) classes = to_vector(checked_labels(*labels, first.size(0), 0, "labels"));
  const MapBatch clean = fold_maps(first, schema), moved = fold_maps(second, schema);

  std::vector<Compared> results;
  for (const std::unique_ptr<Metric>& metric : chosen) {
    const Baseline level = baseline(*metric, clean, classes, {.seed = seed});
    const Assessment assessment = assess(*metric, clean, moved, level, seed);
    warn_of_ties(assessment);
    results.push_back({summary_of(assessment), to_tensor(assessment.values)});
  }
  return results;
}

std::vector<Measured> measure_model(const Question& question, const MeasureChoice& choice) {
  std::vector<std::unique_ptr<Measure>> chosen;
  for (const std::string& call : choice.measures) chosen.push_back(measures().make(call));
  const std::unique_ptr<Explainer> explainer = explainers().make(choice.explainer);
  const Subject subject = examine(question);
  if (PythonModel* function = python_model(question)) function->look_twice(subject.inputs);
  const MeasureJob job{.model = *subject.model,
                       .explainer = *explainer,
                       .schema = subject.schema,
                       .inputs = subject.inputs,
                       .targets = subject.targets,
                       .sample_ids = subject.ids,
                       .seed = question.seed,
                       .epsilon = choice.epsilon,
                       .endpoints = choice.endpoints ? checked_batch(*choice.endpoints, "endpoints") : at::Tensor(),
                       .baseline = subject.baseline,
                       .background = subject.background};
  for (const std::unique_ptr<Measure>& measure : chosen) {
    with_advice(question, [&] { check_measure(*measure, job); });
  }
  std::vector<Measured> results;
  for (const std::unique_ptr<Measure>& measure : chosen) {
    const Measurement found = measure_all(*measure, job, tiles_of(question, subject.schema.layout));
    Json summary = to_json(*measure, found, question.seed);
    summary.erase("values");
    summary.erase("parts");
    Measured measured{.summary = dump_json(summary), .values = to_tensor(found.values)};
    for (const auto& [name, values] : found.parts) measured.parts.emplace_back(name, to_tensor(values));
    results.push_back(std::move(measured));
  }
  return results;
}

}  // namespace holdfast::python
