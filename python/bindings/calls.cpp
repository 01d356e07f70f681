#include "calls.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/cell.h"
#include "holdfast/metric/levels.h"
#include "python_model.h"

namespace holdfast::python {
namespace {

// Python's functions run on one thread, each call with overhead of its own: small samples go in larger tiles.
constexpr std::int64_t kSmallSample = 512;
constexpr std::int64_t kPythonTile = 1024;

TileOptions tiles_of(const Question& question, const Layout& layout) {
  const bool function = dynamic_cast<const PythonModel*>(question.model.get()) != nullptr;
  const bool enlarge = question.tile == 0 && function && layout.inputs() <= kSmallSample;
  return {.size = enlarge ? kPythonTile : question.tile, .threads = question.threads};
}

// A model may give NaN for some samples only; nothing that follows would mean anything.
void check_logits(const at::Tensor& logits) {
  if (all_finite(logits)) return;
  const at::Tensor bad = at::isfinite(logits).logical_not().any(1);
  input_error("the model gave NaN or infinity for sample {}; logits must be finite", bad.nonzero()[0].item<std::int64_t>());
}

template <class Field>
at::Tensor column(const std::vector<SampleOutcome>& samples, Field field) {
  using Number = std::remove_cvref_t<decltype(field(samples.front()))>;
  at::Tensor values = at::empty({static_cast<std::int64_t>(samples.size())}, c10::CppTypeToScalarType<Number>::value);
  std::transform(samples.begin(), samples.end(), values.template mutable_data_ptr<Number>(), field);
  return values;
}

std::vector<std::int64_t> to_vector(const at::Tensor& labels) {
  return {labels.const_data_ptr<std::int64_t>(), labels.const_data_ptr<std::int64_t>() + labels.numel()};
}

std::string summary_of(const Assessment& assessment) {
  Json json = to_json(assessment);
  json.erase("values");
  return dump_json(json);
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
  check_logits(batch.logits);
  batch.maps = scaled_maps(batch.maps, batch.log_scale);
  return batch;
}

Attacked attack(const Question& question, const AttackChoice& choice) {
  const std::unique_ptr<Explainer> explainer = explainers().make(choice.explainer);
  const std::unique_ptr<Attack> attack = attacks().make(choice.attack);
  const std::unique_ptr<Metric> metric = metrics().make(choice.metric);
  const Select select = parse_select(choice.select);
  const Norm norm = parse_norm(choice.norm);
  Subject subject = examine(question);
  const ThreatModel threat = ThreatModel::make(norm, choice.epsilon, choice.box, subject.schema);
  check_data({.name = "inputs",
              .inputs = subject.inputs,
              .schema = subject.schema,
              .trial = {.metrics = {choice.metric}, .box = threat.box}});
  const TileOptions tiles = tiles_of(question, subject.schema.layout);
  const at::Tensor logits = predict(*subject.model, subject.inputs, subject.schema.layout, tiles);
  check_logits(logits);
  if (!subject.targets.defined()) subject.targets = predicted_class(logits);

  const CellResult result = run_cell({.model = *subject.model,
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
                                      .trace = choice.trace},
                                     tiles);
  const std::vector<SampleOutcome>& samples = result.samples;
  Attacked out{.perturbed = result.perturbed,
               .original_maps = scaled_maps(result.original_maps, result.original_scale),
               .perturbed_maps = scaled_maps(result.moved_maps, result.moved_scale),
               .logits = result.logits,
               .perturbed_logits = result.moved_logits,
               .targets = result.targets,
               .prediction = predicted_class(result.logits),
               .prediction_after = predicted_class(result.moved_logits),
               .norm = threat.distance(result.perturbed, subject.inputs.to(result.perturbed.options())),
               .value = column(samples, [](const SampleOutcome& sample) { return sample.value; }),
               .first_swap = column(samples, [](const SampleOutcome& sample) { return sample.first_swap; }),
               .label_flips = column(samples, [](const SampleOutcome& sample) { return sample.label_flips; }),
               .evaluations = column(samples, [](const SampleOutcome& sample) { return sample.evaluations; }),
               .iteration = column(samples, [](const SampleOutcome& sample) { return sample.iteration; }),
               .metric = metric->name(),
               .attack = attack->name(),
               .explainer = explainer->name(),
               .summary = assessed(*metric, result, subject.schema, question.seed)};
  for (const SampleOutcome& sample : samples) out.trace.push_back(sample.trace);
  return out;
}

std::vector<Compared> measure(const at::Tensor& original, const at::Tensor& perturbed, const std::vector<std::string>& calls,
                              const std::optional<Schema>& given, const std::optional<at::Tensor>& labels, std::uint64_t seed) {
  std::vector<std::unique_ptr<Metric>> chosen;
  for (const std::string& call : calls) chosen.push_back(metrics().make(call));
  const at::Tensor first = checked_maps(original, "original"), second = checked_maps(perturbed, "perturbed");
  if (first.sizes() != second.sizes()) {
    input_error("the original maps have shape {}, but the perturbed ones have shape {}", to_string(first.sizes().vec()),
                to_string(second.sizes().vec()));
  }
  const Schema schema = schema_for(given, nullptr, first, "original");
  for (const std::unique_ptr<Metric>& metric : chosen) metric->check(schema);
  std::vector<std::int64_t> classes;
  if (labels) classes = to_vector(checked_labels(*labels, first.size(0), 0, "labels"));
  const MapBatch clean = fold_maps(first, schema), moved = fold_maps(second, schema);

  std::vector<Compared> results;
  for (const std::unique_ptr<Metric>& metric : chosen) {
    const Baseline levels = baseline(*metric, clean, classes, {.seed = seed});
    const Assessment assessment = assess(*metric, clean, moved, levels, seed);
    warn_of_ties(assessment);
    results.push_back({summary_of(assessment), at::tensor(at::ArrayRef<double>(assessment.values), at::kDouble)});
  }
  return results;
}

}  // namespace holdfast::python
